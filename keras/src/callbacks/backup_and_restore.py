# graft: keras>=3.1,<3.3
class BackupAndRestore:
    def on_train_begin(self, logs=None):
        if file_utils.exists(self._training_metadata_path):
            with file_utils.File(self._training_metadata_path, "r") as file:
                self.model._initial_epoch = json.loads(file.read())["epoch"]
        if file_utils.exists(self._weights_path):
            optimizer = self.model.optimizer
            if self.model.built and not optimizer.built:
                # It takes its state from the file once it has variables.
                optimizer.build(self.model.trainable_variables)
            self.model.load_weights(self._weights_path)
