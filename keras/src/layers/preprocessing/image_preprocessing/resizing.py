# graft: keras>=3.6,<3.7
class Resizing:
    def transform_images(self, images, transformation=None, training=True):
        resized = self.backend.image.resize(
            images,
            size=(self.height, self.width),
            interpolation=self.interpolation,
            data_format=self.data_format,
            crop_to_aspect_ratio=self.crop_to_aspect_ratio,
            pad_to_aspect_ratio=self.pad_to_aspect_ratio,
            fill_mode=self.fill_mode,
            fill_value=self.fill_value,
        )
        if not backend.is_int_dtype(images.dtype):
            # The limits of bfloat16 are not known to NumPy.
            return self.backend.cast(resized, images.dtype)
        resized = self.backend.numpy.round(resized)
        return _saturate_cast(resized, images.dtype, self.backend)
