# Rollcall. `make` without a target prints the targets. Every target first installs missing dependencies, which requires
# npm with Node.js 20 or later, git and make. Everything then runs on the Node.js in the dependencies.

PNPM := npx --yes pnpm@10.34.9
BIN := node_modules/.bin
INSTALLED := node_modules/.installed
MANIFESTS := package.json pnpm-workspace.yaml pnpm-lock.yaml $(wildcard libs/*/package.json services/*/package.json services/*/web/package.json bench/package.json)
JEST := $(BIN)/jest
export PATH := $(CURDIR)/$(BIN):$(PATH)

# A make that a test starts uses only its own arguments, not those of this one.
MAKEOVERRIDES =
unexport ARGS NAME BASE FILE

# If the link points to a Node.js of this machine that has been removed, reinstall to link to the current one.
$(shell test -x $(BIN)/node || rm -f $(INSTALLED))

.DEFAULT_GOAL := help
.PHONY: help install run build test check acceptance dist sdk release conformance check-stubs lint gen probes docs manifests screenshots fmt bench drill fuzz mutants baseline clean require-node

help: ## Print this help
	@awk 'BEGIN { FS = ":.*## "; print "Rollcall. Usage: make TARGET [ARGS=...] [NAME=...]\n" } \
		/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## Build, then run everything on this machine with its data in .rollcall (ARGS: flags of `rollcall up`)
	@exec bin/rollcall up --data-dir .rollcall $(ARGS)

build: $(INSTALLED) ## Bundle the executable, which bin/rollcall runs
	@node services/rollcall/bundle.mjs

test: $(INSTALLED) check-stubs lint ## Run all checks of CI: stubs, lint, breaking changes, tests (ARGS: arguments for jest)
	sh scripts/check-breaking.sh
	$(JEST) $(ARGS)

check: $(INSTALLED) ## Check one file within seconds: types, lint, and the tests that import it (FILE: its path; ARGS=--watch: repeat on changes)
	@node scripts/check.mjs $(FILE) $(ARGS)

acceptance: build ## Run slow tests: drills, and packages on fresh machines (ARGS: arguments for jest)
	$(BIN)/tsc -b bench
	$(JEST) --config jest.acceptance.config.js $(ARGS)

dist: $(INSTALLED) ## Make the packages in dist/: tarballs, .deb, npm, chart, images, with checksums and SBOMs (ARGS: --out DIR, --platform linux-x64, --images none)
	@node scripts/packages/main.mjs $(ARGS)

sdk: $(INSTALLED) ## Make the SDKs in dist/sdk (NAME: go, java, python or typescript; ARGS=--check: also check types and style)
	@node scripts/sdk/main.mjs $(NAME) $(ARGS)

release: $(INSTALLED) ## Cut, build and sign a release, and check what would be published (NAME: its version; ARGS=--publish: publish it)
	@node scripts/release/main.mjs $(NAME) $(ARGS)

conformance: build ## Test an agent with the scenarios of sdk/conformance (ARGS: -- PROGRAM [ARGUMENT...]; without it, list them)
	$(BIN)/tsc -b bench
	@node bench/dist/conformance/main.js $(ARGS)

lint: $(INSTALLED) ## Check types, format, lint and import rules, unused code, the schema's style, and plain English
	$(BIN)/tsc -b
	$(BIN)/tsc -p tsconfig.tests.json
	$(BIN)/tsc -p services/console/web
	$(BIN)/biome ci
	$(BIN)/knip
	$(BIN)/buf lint
	$(BIN)/buf format proto --diff --exit-code
	node scripts/english/main.ts

gen: $(INSTALLED) ## Generate the stubs in libs/api from proto/, and the reference in docs/ from the sources
	$(BIN)/buf generate
	node scripts/generate-comments.mjs
	node --conditions=source scripts/reference/main.ts

probes: $(INSTALLED) ## Check the probes of this machine against its real nvidia-smi
	node --conditions=source scripts/check-probes.mjs

docs: $(INSTALLED) ## Build the documentation as a site in dist/docs (BASE: the path below which it is served, / by default; REPOSITORY: where pages are edited, the origin by default)
	cd docs/.vitepress && $(PNPM) install --ignore-workspace --frozen-lockfile --silent
	BASE="$(BASE)" REPOSITORY="$(REPOSITORY)" docs/.vitepress/node_modules/.bin/vitepress build docs

manifests: ## Render deploy/chart into deploy/kubernetes and tests/kubernetes/rendered (needs helm, which .ci/run builds into .tools/bin)
	node scripts/render-manifests.mjs

screenshots: build ## Take screenshots of every page of the console in dist/screenshots, and those of the docs in docs/images (ARGS: another folder)
	@node --conditions=source scripts/screenshots.mjs $(ARGS)

fmt: $(INSTALLED) ## Format sources and schema, and fix what the linter can fix safely
	$(BIN)/biome check --write
	$(BIN)/buf format proto --write

bench: build ## Run benchmarks, each compared with a rival or bound of the same run (NAME: one row, for example heartbeats)
	$(BIN)/tsc -b bench
	@node bench/dist/main.js $(NAME)

drill: build ## Break something on purpose and check that no node is declared unhealthy because of it (NAME: one drill; without it, list them; SHORT=1: scaled down)
	$(BIN)/tsc -b bench
	@node bench/dist/drills/main.js $(NAME) $(if $(SHORT),--short)

fuzz: $(INSTALLED) ## Send invalid requests to every method, and mutate Beats by coverage (ARGS: SECONDS SEED CASE; default: 600 s, a random seed, all cases)
	FUZZ="$(or $(ARGS),600)" $(JEST) tests/fuzz
	@FUZZ="$(or $(ARGS),600)" node --conditions=source tests/fuzz/beat-reader-main.ts

mutants: $(INSTALLED) ## Break code on purpose and see which tests detect it: the patches in mutants/ (NAME: some of them; SHARD=2/4: the second of four parts), or libs/domain with Stryker (NAME=domain, NAME="domain session")
	@SHARD="$(SHARD)" node scripts/mutants.mjs $(NAME)

clean: ## Remove build results and coverage; keep installed packages and the data in .rollcall
	rm -rf dist libs/*/dist services/*/dist services/rollcall/bundle services/rollcall/bundle.draft-* services/rollcall/bundle.old-* bench/dist coverage

# The targets below are parts of those above, and tasks of maintainers.

install: $(INSTALLED)

check-stubs: $(INSTALLED)
	sh scripts/check-stubs.sh
	node scripts/generate-comments.mjs --check

# Run this after a release: later schemas are compared with the released one.
baseline:
	rm -rf baseline/proto && cp -R proto baseline/proto

$(INSTALLED): $(MANIFESTS) | require-node
	$(PNPM) install --frozen-lockfile
	@touch $@

require-node:
	@command -v node >/dev/null && command -v npx >/dev/null || \
		{ echo "Rollcall needs npm with any Node.js since version 20: node or npx is not in the PATH." >&2; exit 1; }
	@node scripts/require-node.cjs
