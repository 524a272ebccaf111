# graft: keras>=2.11 | tf_keras
from keras.saving import hdf5_codec


def serialize_dict(obj):
    return {
        key: serialize_keras_object(hdf5_codec.plain_scalars(value))
        for key, value in obj.items()
    }
