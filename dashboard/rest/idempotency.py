"""``Idempotency-Key``: the same request again gets the same answer.

The answer is written in the transaction of what it answers, so a key that is known has had its
effect exactly once, however often a caller lost the connection and tried again.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone

from dashboard.rest.answers import KEPT
from dashboard.rest.models import IdempotentAnswer
from dashboard.rest.problems import MEDIA_TYPE, Problem

REPLAYED: Final = "Idempotency-Replayed"


def once(request: HttpRequest, key: str | None, work: Callable[[], dict[str, Any]]) -> HttpResponse:
    """The answer of ``work``, or of its first call with this key by this user.

    Raises:
        Problem: as ``work``, where there is no key; 422 where the key was used for something else.
    """
    if not key:
        return JsonResponse(work())
    known = _known(request, key)
    if known is not None:
        return _again(request, known)
    try:
        with transaction.atomic():
            return _first(request, key, work)
    except IntegrityError:
        # The same request at the same moment: the other one was first.
        known = _known(request, key)
        if known is None:
            raise
        return _again(request, known)


def _first(request: HttpRequest, key: str, work: Callable[[], dict[str, Any]]) -> HttpResponse:
    row = IdempotentAnswer.objects.create(
        user_id=_caller(request),
        key=key,
        fingerprint=_fingerprint(request),
        created_at=timezone.now(),
    )
    try:
        row.status, row.body = 200, work()
    except Problem as problem:
        # Its text is kept too; what it refused has changed nothing.
        row.status, row.body = problem.status, problem.body
    row.save(update_fields=["status", "body"])
    return _answer(row)


def _known(request: HttpRequest, key: str) -> IdempotentAnswer | None:
    since = timezone.now() - KEPT
    rows = IdempotentAnswer.objects.filter(user=_caller(request), key=key)
    rows.filter(created_at__lt=since).delete()
    return rows.first()


def _again(request: HttpRequest, known: IdempotentAnswer) -> HttpResponse:
    if known.fingerprint != _fingerprint(request):
        raise Problem(
            422, "key_reused", "This Idempotency-Key was used for another request; make a new one."
        )
    response = _answer(known)
    response[REPLAYED] = "true"
    return response


def _caller(request: HttpRequest) -> int:
    assert request.user.pk is not None  # auth has let the request in
    return request.user.pk


def _answer(row: IdempotentAnswer) -> HttpResponse:
    kind = "application/json" if row.status == 200 else MEDIA_TYPE
    return JsonResponse(row.body, status=row.status, content_type=kind)


def _fingerprint(request: HttpRequest) -> str:
    parts = (str(request.method), request.get_full_path())
    return sha256("\n".join(parts).encode() + b"\n" + request.body).hexdigest()
