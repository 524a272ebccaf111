#!/bin/sh
# Installs Debian's Bazel, all that `bazel test //keras/saving:all` needs beside
# the packages of requirements.txt. Run as root.
set -eu
command -v bazel > /dev/null && exit
apt-get update -qq
apt-get install --yes --no-install-recommends bazel-bootstrap
