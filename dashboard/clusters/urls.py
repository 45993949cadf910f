"""URLs of the clusters' pages."""

from django.urls import path, re_path

from dashboard.clusters import pages

# A number that every database's columns hold.
_ONE = r"^clusters/(?P<pk>[0-9]{1,18})/"

urlpatterns = [
    path("clusters/new/", pages.new, name="cluster-new"),
    re_path(_ONE + r"\Z", pages.cluster, name="cluster"),
    re_path(_ONE + r"look/\Z", pages.look, name="cluster-look"),
    re_path(_ONE + r"runs/\Z", pages.add_run, name="cluster-add-run"),
    re_path(_ONE + r"remove/\Z", pages.remove, name="cluster-remove"),
]
