"""Lets Debian's Bazel run Python tests without a network.

Bazel 4 downloads rules_cc, rules_java and its coverage tools before it runs a
py_test, only to read the definitions of targets that are never built. Debian's
`bazel-bootstrap` 4.2.3 has the native rules behind them, so repositories that
forward to `native` will do.
"""

_NATIVE_RULES = {
    "rules_cc": ("cc", [
        "cc_binary",
        "cc_library",
        "cc_test",
        "cc_toolchain",
        "cc_toolchain_suite",
    ]),
    "rules_java": ("java", [
        "java_import",
        "java_runtime",
        "java_toolchain",
    ]),
}

_COVERAGE_TOOLS = """
filegroup(
    name = "coverage_report_generator",
    visibility = ["//visibility:public"],
)

filegroup(
    name = "lcov_merger",
    visibility = ["//visibility:public"],
)
"""

def _stub_repository_impl(repository_ctx):
    for path, content in repository_ctx.attr.files.items():
        repository_ctx.file(path, content)

_stub_repository = repository_rule(
    implementation = _stub_repository_impl,
    attrs = {"files": attr.string_dict(doc = "Content by path.")},
)

def debian_repositories():
    """Defines the stubs, for a Bazel without a release label only.

    Debian builds its Bazel without one. Every release of the Bazel project has
    one and gets the real repositories, as it would without this macro.
    """
    if native.bazel_version:
        return
    for name, (package, rules) in _NATIVE_RULES.items():
        forwards = ["{0} = native.{0}".format(rule) for rule in rules]
        _stub_repository(
            name = name,
            files = {
                package + "/BUILD": "",
                package + "/defs.bzl": "\n".join(forwards) + "\n",
            },
        )
    _stub_repository(
        name = "remote_coverage_tools",
        files = {"BUILD": _COVERAGE_TOOLS},
    )
