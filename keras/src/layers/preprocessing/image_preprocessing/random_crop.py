class RandomCrop:
    # graft: keras>=3.8,<3.16
    def transform_images(self, images, transformation, training=True):
        images = self.backend.cast(images, self.compute_dtype)
        if not training:
            return images
        top, left = transformation
        rows = slice(top, top + self.height)
        columns = slice(left, left + self.width)
        if self.data_format == "channels_last":
            images = images[..., rows, columns, :]
        else:
            images = images[..., rows, columns]
        shape = self.backend.shape(images)
        cropped = (shape[self.height_axis], shape[self.width_axis])
        size = (self.height, self.width)
        # A size that is known in the graph only is not an integer.
        if all(isinstance(n, int) for n in cropped) and cropped == size:
            return images
        images = self.backend.image.resize(
            images, size=size, data_format=self.data_format
        )
        return self.backend.cast(images, self.compute_dtype)

    # graft: keras>=3.16
    def transform_images(self, images, transformation, training=True):
        images = self.backend.cast(images, self.compute_dtype)
        if not training:
            return images
        cropped = self._random_crop(images, transformation)
        # A backend may have resized it in a wider dtype.
        return self.backend.cast(cropped, self.compute_dtype)
