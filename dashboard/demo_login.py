"""The link that `manage.py demo` prints: it opens the site logged in.

Like a notebook server's token it is good for one run of the demo, and for an hour of that.
Outside the demo there is no run to match, so the view answers 404.
"""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_not_required
from django.core.signing import BadSignature, TimestampSigner
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

SALT = "kubesched.demo-login"
MAX_AGE_SECONDS = 3600
MAX_DIGITS = 19


def make_token(username: str, run: str) -> str:
    """Return a token that logs ``username`` in during the demo run named ``run``."""
    return TimestampSigner(salt=f"{SALT}.{run}").sign(username)


@login_not_required
@never_cache
@require_GET
def demo_login(request: HttpRequest, token: str) -> HttpResponse:
    run: str = settings.KUBESCHED_DEMO_RUN
    if not run:
        raise Http404
    if request.user.is_authenticated:
        return _landing(request)
    try:
        name = TimestampSigner(salt=f"{SALT}.{run}").unsign(token, max_age=MAX_AGE_SECONDS)
    except BadSignature:
        return redirect("login")
    user = get_user_model().objects.filter(username=name, is_active=True).first()
    if user is None:
        return redirect("login")
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return _landing(request)


def _landing(request: HttpRequest) -> HttpResponse:
    """The run that the link names by number, else the list of clusters."""
    run = request.GET.get("run", "")
    if run.isdecimal() and len(run) <= MAX_DIGITS:
        return redirect("overview", int(run))
    return redirect(settings.LOGIN_REDIRECT_URL)
