"""URLs of the webhooks' pages."""

from django.urls import path, re_path

from dashboard.webhooks import pages

# A number that every database's columns hold.
_ONE = r"^webhooks/(?P<pk>[0-9]{1,18})/"

urlpatterns = [
    path("webhooks/", pages.webhooks, name="webhooks"),
    re_path(_ONE + r"\Z", pages.webhook, name="webhook"),
    re_path(_ONE + r"secret/\Z", pages.new_secret, name="webhook-secret"),
    re_path(_ONE + r"deliveries/(?P<delivery>[0-9]{1,18})/\Z", pages.resend, name="webhook-resend"),
    re_path(_ONE + r"(?P<action>start|stop|test|delete)/\Z", pages.act, name="webhook-act"),
]
