class LoadWeightsTests:
    def test_load_weights(self, save_format, source_dtype, dest_dtype):
        """Weights of each dtype load into a model of each other one."""
        suffix = {"keras": ".keras", "weights.h5": ".weights.h5", "h5": ".h5"}
        filepath = os.path.join(
            self.get_temp_dir(), f"model{suffix[save_format]}"
        )
        source = self.get_model(dtype=source_dtype)
        if save_format == "weights.h5":
            source.save_weights(filepath)
        else:
            source.save(filepath)
        loaded = self.get_model(dtype=dest_dtype)
        loaded.load_weights(filepath)
        for before, after in zip(source.get_weights(), loaded.get_weights()):
            self.assertDType(after, dest_dtype)
            if source_dtype == dest_dtype:
                self.assertEqual(before.tobytes(), after.tobytes())
            self.assertAllClose(
                before.astype("float32"),
                after.astype("float32"),
                atol=1e-3,
                rtol=1e-2,
            )
