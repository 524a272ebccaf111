class BaseSpatialDropout:
    def get_config(self):
        config = super().get_config()
        return {key: config[key] for key in ("rate", "seed", "name", "dtype")}
