# A thin front of CMakePresets.json: `make help` says what there is.
PREFIX ?= /usr/local
DATA ?=
PARTS ?=
BUILD := build

.PHONY: all help setup train check test bench install uninstall wheel dist packages site \
	format clean

all:
	@test -f $(BUILD)/build.ninja || cmake --preset program
	@cmake --build $(BUILD)

help:
	@echo 'make                    builds the program ($(BUILD)/tranche) and the library'
	@echo 'make setup              installs what a build needs (Debian, Ubuntu)'
	@echo 'make train [DATA=...]   set-up, build, then trains the default model on text'
	@echo '                        found here, or on your files and folders'
	@echo 'make check              set-up, build, then the tests that matter most'
	@echo 'make test [PARTS=...]   set-up, then every test, warnings being errors; or only'
	@echo '                        parts, of "release mpich asan tsan fuzz"'
	@echo 'make bench              measures, with PyTorch beside it where it is installed'
	@echo 'make install PREFIX=... program, library, headers, pkg-config and CMake files,'
	@echo '                        documents and examples'
	@echo 'make uninstall          removes what make install has written'
	@echo 'make wheel              the Python package, python/dist/tranche-*.whl'
	@echo 'make dist               build/tranche-*.tar.gz: the sources, which build without git'
	@echo 'make site               build/site: the documents as pages (Sphinx, MyST, Furo)'
	@echo 'make packages           tries each way of installing in fresh systems of Debian 12'
	@echo '                        and 13 (root, mmdebstrap; an hour)'
	@echo 'make format             formats the sources'
	@echo 'make clean              removes the build folders'

setup:
	@tools/setup.sh

train:
	@tools/setup.sh
	@test -f $(BUILD)/build.ninja || cmake --preset program
	@cmake --build $(BUILD) --target tranche-program
	@tools/train.sh $(DATA)

check:
	@tools/setup.sh test
	@cmake --preset release
	@cmake --build $(BUILD)
	@OMP_WAIT_POLICY=passive ctest --test-dir $(BUILD) --label-regex '^check$$' \
		--parallel "$$(nproc)" --output-on-failure

test:
	@tools/setup.sh test
	@tools/test.sh $(PARTS)

bench: all
	@bench/run.sh

install: all
	@cmake --install $(BUILD) --prefix '$(PREFIX)'

uninstall:
	@test -f $(BUILD)/install_manifest.txt || { echo 'nothing has been installed from $(BUILD)'; exit 2; }
	@tools/uninstall.sh $(BUILD)/install_manifest.txt

wheel: all
	@tools/wheel.sh

dist:
	@tools/dist.sh

site: all
	@tools/site.sh

packages:
	@tools/packages.sh

format:
	@tools/format.sh

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-mpich $(BUILD)-fuzz $(BUILD)-debian13 \
		$(BUILD)-wheel $(BUILD)-wheel-tools $(BUILD)-packages python/dist
