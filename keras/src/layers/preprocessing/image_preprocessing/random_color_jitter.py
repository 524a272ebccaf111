# graft: keras>=3.8
class RandomColorJitter:
    def __init__(
        self,
        value_range=(0, 255),
        brightness_factor=None,
        contrast_factor=None,
        saturation_factor=None,
        hue_factor=None,
        seed=None,
        data_format=None,
        **kwargs,
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.value_range = value_range
        self.brightness_factor = brightness_factor
        self.contrast_factor = contrast_factor
        self.saturation_factor = saturation_factor
        self.hue_factor = hue_factor
        self.seed = seed
        self.generator = SeedGenerator(seed)

        def make(layer_class, factor):
            if factor is None:
                return None
            return layer_class(
                factor=factor,
                value_range=value_range,
                seed=seed,
                dtype=self.dtype_policy,
            )

        self.random_brightness = make(
            random_brightness.RandomBrightness, brightness_factor
        )
        self.random_contrast = make(
            random_contrast.RandomContrast, contrast_factor
        )
        self.random_saturation = make(
            random_saturation.RandomSaturation, saturation_factor
        )
        self.random_hue = make(random_hue.RandomHue, hue_factor)
