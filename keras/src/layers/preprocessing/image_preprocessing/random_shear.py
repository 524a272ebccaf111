# graft: keras>=3.8
class RandomShear:
    def get_config(self):
        def as_given(factor):
            # A number gives a range whose lower end is no argument.
            lower, upper = factor
            return upper if lower == -upper else factor

        config = {
            "x_factor": as_given(self.x_factor),
            "y_factor": as_given(self.y_factor),
            "interpolation": self.interpolation,
            "fill_mode": self.fill_mode,
            "fill_value": self.fill_value,
            "data_format": self.data_format,
            "seed": self.seed,
        }
        return {**super().get_config(), **config}
