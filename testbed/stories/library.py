"""All stories."""

from testbed.stories.about_nodes import of_nodes
from testbed.stories.about_pods import of_company, of_importance
from testbed.stories.about_spreading import of_spreading
from testbed.stories.about_volumes import of_volumes

STORIES = (*of_nodes(), *of_company(), *of_spreading(), *of_importance(), *of_volumes())
