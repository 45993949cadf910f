"""Static files in production."""

from whitenoise.storage import CompressedManifestStaticFilesStorage


class ModuleManifestStorage(CompressedManifestStaticFilesStorage):
    """Hashed, compressed files, with the imports between ES modules rewritten too.

    Without the rewriting a page would load one module twice, by its hashed and by its plain
    name, and each would have a state of its own.
    """

    support_js_module_import_aggregation = True
