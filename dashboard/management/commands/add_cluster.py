"""`manage.py add_cluster`: a real cluster, as on its page, from a shell or a script."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from dashboard import config_file
from dashboard.clusters import services
from dashboard.models import SchedulerRun
from scheduler_core.config import (
    InvalidConfiguration,
    SchedulerConfiguration,
    load_configuration,
)
from scheduler_core.kube.access import Access, InCluster, Kubeconfig, KubeconfigFile, Token
from scheduler_core.plugins.registry import in_tree_registry

EXAMPLES = """
examples:
  manage.py add_cluster staging --kubeconfig ~/.kube/config --context staging
  manage.py add_cluster staging --kubeconfig-file ~/.kube/config
  manage.py add_cluster here --in-cluster
  manage.py add_cluster staging --server https://10.0.0.1:6443 --token-file token --ca ca.crt

--kubeconfig keeps the context's credentials, encrypted. --kubeconfig-file keeps its path alone: the
worker reads it whenever a run starts, and may run the programs that it names (exec, of clouds).
The cluster is looked at once; its scheduler waits until somebody starts it.
"""


class Command(BaseCommand):
    help = "Add a real cluster, with a run that waits to be started."

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> Any:
        kwargs.setdefault("epilog", EXAMPLES)
        kwargs.setdefault("formatter_class", RawDescriptionHelpFormatter)
        return super().create_parser(prog_name, subcommand, **kwargs)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="how people will know it")
        way = parser.add_mutually_exclusive_group(required=True)
        way.add_argument("--kubeconfig", type=Path, metavar="FILE", help="take it over from there")
        way.add_argument(
            "--kubeconfig-file", type=Path, metavar="FILE", help="a file of the worker's machine"
        )
        way.add_argument(
            "--in-cluster", action="store_true", help="the service account of the worker's pod"
        )
        way.add_argument("--server", metavar="URL", help="the API server's address")
        parser.add_argument("--context", default="", help="of the kubeconfig (the current one)")
        parser.add_argument("--token-file", type=Path, metavar="FILE", help="with --server")
        parser.add_argument("--ca", type=Path, metavar="FILE", help="PEM; with --server")
        parser.add_argument(
            "--insecure", action="store_true", help="do not check the server's certificate"
        )
        parser.add_argument(
            "--observe",
            action="store_true",
            help="begin with a run that places nothing and says where it would (reads alone)",
        )
        parser.add_argument(
            "--config", type=Path, metavar="FILE", help="(examples/kube.yaml, or observe.yaml)"
        )
        config_file.add_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        config = _config(options["config"])
        mode = SchedulerRun.Mode.OBSERVE if options["observe"] else SchedulerRun.Mode.SCHEDULE
        if options["write_config_to"] is not None:
            checked = _checked(services.default_config(mode) if config is None else config)
            self.stdout.write(config_file.write(checked, options["write_config_to"]))
            return
        try:
            run = services.add(None, options["name"], _access(options), config, mode)
        except (services.NameTaken, services.CannotConnect) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"{options['name']} is there: {reverse('overview', args=[run.pk])}")


def _access(options: dict[str, Any]) -> Access:
    if options["in_cluster"]:
        return InCluster()
    if options["kubeconfig_file"]:
        return KubeconfigFile(str(options["kubeconfig_file"].resolve()), options["context"])
    if options["kubeconfig"]:
        return Kubeconfig(_read(options["kubeconfig"]), options["context"])
    token = _read(options["token_file"]).strip() if options["token_file"] else ""
    if not token:
        raise CommandError("--server needs --token-file with a token in it")
    ca = _read(options["ca"]) if options["ca"] else ""
    return Token(options["server"], token, ca, options["insecure"])


def _config(path: Path | None) -> str | None:
    if path is None:
        return None
    text = _read(path)
    try:
        _checked(text)
    except InvalidConfiguration as error:
        raise CommandError(f"{path}: {error}") from error
    return text


def _checked(text: str) -> SchedulerConfiguration:
    return load_configuration(text, in_tree_registry(), dotted_plugins=True)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from error
    except UnicodeDecodeError:
        raise CommandError(f"{path}: it is not text") from None
