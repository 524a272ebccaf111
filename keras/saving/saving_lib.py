# graft: keras>=2.11 | tf_keras
from keras import backend
from keras.optimizers.legacy import optimizer_v2
from keras.saving import hdf5_codec
from keras.saving import optimizer_state


# graft: keras>=2.12,<2.15
def _walk_trackable(trackable):
    for name in dir(trackable):
        if name.startswith("__") or name in ATTR_SKIPLIST:
            continue
        try:
            child = getattr(trackable, name)
        except Exception:
            continue
        if isinstance(child, optimizer_v2.OptimizerV2):
            child = optimizer_state.LegacyOptimizerState.of(trackable, child)
        yield name, child


# graft: keras>=2.15 | tf_keras
def _walk_trackable(trackable):
    for name in sorted(dir(trackable), reverse=True):
        if name.startswith("__") or name in ATTR_SKIPLIST:
            continue
        try:
            child = getattr(trackable, name)
        except Exception:
            continue
        if isinstance(child, optimizer_v2.OptimizerV2):
            child = optimizer_state.LegacyOptimizerState.of(trackable, child)
        yield name, child


# graft: keras>=2.12 | tf_keras
def _is_keras_trackable(obj):
    # Here because of a circular import.
    from keras.metrics import base_metric

    return isinstance(
        obj,
        (
            base_layer.Layer,
            optimizer.Optimizer,
            optimizer_state.LegacyOptimizerState,
            base_metric.Metric,
            losses.Loss,
        ),
    )


# graft: keras>=2.12 | tf_keras
class H5IOStore:
    def make(self, path):
        return hdf5_codec.VariableStore.create(
            self.h5_file, path, backend.dtype_numpy
        )

    def get(self, path):
        try:
            group = hdf5_codec.open_group(self.h5_file, f"{path}/vars")
        except KeyError:
            if not path:
                raise
            return {}
        return hdf5_codec.VariableStore(group, backend.dtype_numpy)


# graft: keras==2.11.*
class H5IOHandler:
    def make(self, path):
        return hdf5_codec.VariableStore.create(
            self.h5_file, path, backend.dtype_numpy
        )

    def get(self, path):
        if path and path not in self.h5_file:
            print(f"Warning: the file has nothing for {path}")
            return {}
        group = hdf5_codec.open_group(self.h5_file, f"{path}/vars")
        return hdf5_codec.VariableStore(group, backend.dtype_numpy)
