# Rollcall. `make` alone prints what there is. Every target installs what is missing first; it needs only
# npm with any Node.js since version 20, git and make. Everything then runs on the Node.js that comes with the dependencies.

PNPM := npx --yes pnpm@10.34.9
BIN := node_modules/.bin
INSTALLED := node_modules/.installed
MANIFESTS := package.json pnpm-workspace.yaml pnpm-lock.yaml $(wildcard libs/*/package.json services/*/package.json services/*/web/package.json bench/package.json)
JEST := $(BIN)/jest
export PATH := $(CURDIR)/$(BIN):$(PATH)

# A make that a test starts is told what its own words say, and not what this one was.
MAKEOVERRIDES =
unexport ARGS NAME BASE FILE

# The link to Node.js may lead to one of this machine that has gone since: another install finds what is there now.
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

test: $(INSTALLED) check-stubs lint ## Everything that CI checks: stubs, lint, breaking changes, tests (ARGS: arguments for jest)
	sh scripts/check-breaking.sh
	$(JEST) $(ARGS)

check: $(INSTALLED) ## Check one file within seconds: types, lint, and the tests that import it (FILE: which; ARGS=--watch: again at each change)
	@node scripts/check.mjs $(FILE) $(ARGS)

acceptance: build ## What takes longer than tests may: drills, and packages on fresh machines (ARGS: arguments for jest)
	$(BIN)/tsc -b bench
	$(JEST) --config jest.acceptance.config.js $(ARGS)

dist: $(INSTALLED) ## Make the packages in dist/: tarballs, .deb, npm, images, with checksums and SBOMs (ARGS: --out DIR, --platform linux-x64, --images none)
	@node scripts/packages/main.mjs $(ARGS)

sdk: $(INSTALLED) ## Make the SDKs in dist/sdk (NAME: go, java, python or typescript; ARGS: --check checks types and style too)
	@node scripts/sdk/main.mjs $(NAME) $(ARGS)

release: $(INSTALLED) ## Cut, build and sign a release, and check what would be published (NAME: its version, ARGS=--publish publishes)
	@node scripts/release/main.mjs $(NAME) $(ARGS)

conformance: build ## Put an agent before the scenarios of sdk/conformance (ARGS: -- PROGRAM [ARGUMENT...]; without it they are listed)
	$(BIN)/tsc -b bench
	@node bench/dist/conformance/main.js $(ARGS)

lint: $(INSTALLED) ## Check types, format, lint and import rules, unused code, and the schema's style
	$(BIN)/tsc -b
	$(BIN)/tsc -p tsconfig.tests.json
	$(BIN)/tsc -p services/console/web
	$(BIN)/biome ci
	$(BIN)/knip
	$(BIN)/buf lint
	$(BIN)/buf format proto --diff --exit-code

gen: $(INSTALLED) ## Generate the stubs in libs/api from proto/, and the reference in docs/ from the sources
	$(BIN)/buf generate
	node scripts/generate-comments.mjs
	node --conditions=source scripts/reference/main.ts

probes: $(INSTALLED) ## Check the probes of this machine against its real nvidia-smi
	node --conditions=source scripts/check-probes.mjs

docs: $(INSTALLED) ## Build the documentation as a site in dist/docs (BASE: the path below which it is served, / by default)
	cd docs/.vitepress && $(PNPM) install --ignore-workspace --frozen-lockfile --silent
	BASE="$(BASE)" docs/.vitepress/node_modules/.bin/vitepress build docs

manifests: ## Render deploy/chart into deploy/kubernetes (needs helm, which .ci/run builds into .tools/bin)
	node scripts/render-manifests.mjs

screenshots: build ## Take pictures of every page of the console into dist/screenshots, and those of the docs into docs/images (ARGS: another folder)
	@node --conditions=source scripts/screenshots.mjs $(ARGS)

fmt: $(INSTALLED) ## Format sources and schema, and fix what the linter can fix safely
	$(BIN)/biome check --write
	$(BIN)/buf format proto --write

bench: build ## Measure, beside a rival or bound of the same run (NAME: one row, for example heartbeats)
	$(BIN)/tsc -b bench
	@node bench/dist/main.js $(NAME)

drill: build ## Break something on purpose and see that no node is judged for it (NAME: which; none lists them; SHORT=1: shrunk)
	$(BIN)/tsc -b bench
	@node bench/dist/drills/main.js $(NAME) $(if $(SHORT),--short)

fuzz: $(INSTALLED) ## Send every method what no client sends, and mutate Beats by coverage (ARGS: SECONDS SEED CASE; default 600 s, a new seed, all)
	FUZZ="$(or $(ARGS),600)" $(JEST) tests/fuzz
	@FUZZ="$(or $(ARGS),600)" node --conditions=source tests/fuzz/beat-reader-main.ts

mutants: $(INSTALLED) ## Break code on purpose and see what notices: the patches in mutants/ (NAME: some of them), or all of libs/domain with Stryker (NAME=domain, NAME="domain session")
	@node scripts/mutants.mjs $(NAME)

clean: ## Remove what was built and measured; installed packages and the data in .rollcall stay
	rm -rf dist libs/*/dist services/*/dist services/rollcall/bundle services/rollcall/bundle.draft-* services/rollcall/bundle.old-* bench/dist coverage

# The targets below are parts of those above, and maintainers' chores.

install: $(INSTALLED)

check-stubs: $(INSTALLED)
	sh scripts/check-stubs.sh
	node scripts/generate-comments.mjs --check

# After a release: the schema as released becomes what later schemas are compared with.
baseline:
	rm -rf baseline/proto && cp -R proto baseline/proto

$(INSTALLED): $(MANIFESTS) | require-node
	$(PNPM) install --frozen-lockfile
	@touch $@

require-node:
	@command -v node >/dev/null && command -v npx >/dev/null || \
		{ echo "Rollcall needs npm with any Node.js since version 20: node or npx is not in the PATH." >&2; exit 1; }
	@node scripts/require-node.cjs
