"""Grafts the overlay into an upstream release and tests the result."""

_UpstreamInfo = provider(
    doc = "The upstream release to graft into.",
    fields = {"release": "A requirement, e.g. `tf_keras==2.21.0`."},
)

def _upstream_flag_impl(ctx):
    return _UpstreamInfo(release = ctx.build_setting_value)

upstream_flag = rule(
    implementation = _upstream_flag_impl,
    build_setting = config.string(flag = True),
    doc = "A command-line flag that names an upstream release.",
)

def _upstream_generation_impl(ctx):
    version = ctx.attr.upstream[_UpstreamInfo].release.partition("==")[2]
    return config_common.FeatureFlagInfo(value = version.partition(".")[0])

upstream_generation = rule(
    implementation = _upstream_generation_impl,
    attrs = {
        "upstream": attr.label(
            mandatory = True,
            providers = [_UpstreamInfo],
        ),
    },
    doc = "The first number of the release, for a `config_setting`.",
)

def _graft_tree_impl(ctx):
    tree = ctx.actions.declare_directory(ctx.label.name)
    release = ctx.attr.upstream[_UpstreamInfo].release
    ctx.actions.run_shell(
        outputs = [tree],
        inputs = ctx.files.srcs,
        command = 'exec python3 -B -m graft tree "$1" "$2" --tests',
        arguments = [release, tree.path],
        # pip gets the wheel: it needs the network, the settings of the user
        # and the cache below HOME, which no sandbox offers.
        execution_requirements = {"local": "1", "requires-network": "1"},
        use_default_shell_env = True,
        mnemonic = "Graft",
        progress_message = "Grafting the overlay into " + release,
    )
    return DefaultInfo(
        files = depset([tree]),
        runfiles = ctx.runfiles(files = [tree]),
    )

graft_tree = rule(
    implementation = _graft_tree_impl,
    attrs = {
        "srcs": attr.label_list(
            allow_files = True,
            doc = "The overlay and graft itself.",
        ),
        "upstream": attr.label(
            mandatory = True,
            providers = [_UpstreamInfo],
        ),
    },
    doc = "A directory that holds the whole grafted package, with its tests.",
)

def keras_test(name, generations = ("2", "3"), **kwargs):
    """Declares a test of the overlay, run in the grafted package.

    The overlay cannot be imported as it is: it holds replaced definitions, not
    whole modules. Nor may Bazel make a package of keras/, which would hide the
    grafted one.

    Args:
        name: Name of the test's file without `.py`; where graft puts that file
            depends on the release.
        generations: The generations of Keras that the test is for; with a
            release of another one, Bazel skips it.
        **kwargs: Passed on to `py_test`.
    """
    compatible = {"//bazel:keras_" + number: [] for number in generations}
    compatible["//conditions:default"] = ["//bazel:other_generation"]
    native.py_test(
        name = name,
        srcs = ["//bazel:run_test.py"],
        main = "//bazel:run_test.py",
        args = ["$(rootpath //bazel:tree)", name + ".py"],
        data = ["//bazel:tree"],
        target_compatible_with = select(compatible),
        deps = [
            "//:expect_absl_installed",
            "//:expect_h5py_installed",
            "//:expect_numpy_installed",
            "//:expect_tensorflow_installed",
        ],
        **kwargs
    )
