# graft: keras<3.6
class Functional:
    def compute_output_spec(self, inputs, training=None, mask=None):
        # A model that was loaded has a list even of a single output.
        return unpack_singleton(super().compute_output_spec(inputs))
