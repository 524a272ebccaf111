class Discretization:
    def get_config(self):
        config = super().get_config()
        return {
            "bin_boundaries": self.bin_boundaries,
            "num_bins": self.num_bins,
            "epsilon": self.epsilon,
            "output_mode": self.output_mode,
            "sparse": self.sparse,
            "name": config["name"],
            "dtype": config["dtype"],
        }
