"""URLs of the REST API, of its schema, and of the page of a person's tokens."""

from django.urls import include, path, re_path

from dashboard.rest import pages, site

urlpatterns = [
    path("api/schema/", site.schema, name="api-schema"),
    path("api/v1/", include(site.urls())),
    path("account/tokens/", pages.account_tokens, name="account-tokens"),
    re_path(
        r"^account/tokens/(?P<pk>[0-9]{1,18})/revoke/\Z", pages.revoke_token, name="revoke-token"
    ),
]
