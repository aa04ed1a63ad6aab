"""What pyproject.toml cannot say: the assets at the checkout's top become app/assets in a wheel, without what only this checkout needs."""

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py


class WithoutMakers(build_py):
    """The scripts that make the assets stay here."""

    def find_package_modules(self, package, package_dir):
        return [each for each in super().find_package_modules(package, package_dir) if not each[1].startswith("make_")]


setup(
    packages=[*find_packages(include=["app", "app.*"]), "app.assets"],
    package_dir={"app.assets": "assets"},
    package_data={"app": ["**/*"], "app.assets": ["**/*"]},
    exclude_package_data={"": ["__pycache__/*", "*.pyc"], "app.assets": ["make_*.py", "screenshots/*"]},
    cmdclass={"build_py": WithoutMakers},
)
