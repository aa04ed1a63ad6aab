"""What pyproject.toml cannot say: the assets at the checkout's top become app/assets in a wheel."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["app", "app.*"]), "app.assets"],
    package_dir={"app.assets": "assets"},
    package_data={"app": ["**/*"], "app.assets": ["**/*"]},
    exclude_package_data={"": ["__pycache__/*", "*.pyc", "make_icons.py"]},
)
