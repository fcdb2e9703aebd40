"""A label model of six functions, estimated from their votes on 1,600 examples."""

# repository = "BatsResearch/labelmodels"
# commit = "3b5683bef7ee902dc205a8cd93572b05b88dbad5"
# paths = ["labelmodels"]
# fixed = "`.item()` of the loss (3801b629)"

import numpy as np

np.int = int  # numpy 1.24 removed it

from labelmodels import LearningConfig, NaiveBayes

votes = np.random.RandomState(0).randint(0, 3, size=(1600, 6))
model = NaiveBayes(num_classes=2, num_lfs=6)
config = LearningConfig()
config.epochs, config.batch_size, config.random_seed = 1, 8, 0
model.estimate_label_model(votes, config)
print(model.get_class_balance())
