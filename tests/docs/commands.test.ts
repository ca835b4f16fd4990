import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { sitePages } from "../../docs/.vitepress/site/pages.ts";
import { readPackages, readSources, workspaceRoot } from "../support/workspace.ts";

/** The reason why no test runs the commands of a page, keyed by page. */
const WHY_NOT: Readonly<Record<string, string>> = {
  "waits-for-a-person": "it waits until a person confirms a login in a browser; tests/cli/login.test.ts does so",
  "examples-of-help": "tests/cli/examples.test.ts runs them without a control plane",
  "runs-until-it-is-stopped": "the tests of the page start the same program with other ports and folders",
  "needs-another-machine": "it names a machine that does not exist in tests; tests start agents with other addresses",
  "needs-systemd": "PID 1 of CI's machine is not systemd; the units are checked by systemd-analyze",
  "needs-a-cluster": "it needs a whole Kubernetes; the manifests are run as processes instead",
  "needs-a-host": "it changes the machine itself; another test runs the configuration",
  "needs-another-postgres": "it names a server; tests/acceptance/postgres does the same with its own servers",
  "run-by-its-own-test": "a test runs the script without the page",
};

/** The languages of blocks that contain no commands. */
const SHOWN = /^(?:text|yaml|nginx|json|ini|toml|go|python|java|proto|ts|typescript|js|xml|css|promql)$/;
const COMMANDS = /^\w+ (test|untested)=([\w-]+)$/;
/**
 * Pages whose commands are not checked. They show diagrams and parts of a tree, or are tested together with their
 * subject.
 */
const EXEMPT = /^(?:ARCHITECTURE|CONTRIBUTING|CHANGELOG)\.md$|^bench\/|^sdk\/|^docs\/(?:decisions|checklists)\//;

const pages = sitePages()
  .map(({ source }) => source)
  .filter((source) => !EXEMPT.test(source));

/** The sources of the tests. They name the pages whose commands they run. */
const tests = [...readSources("tests"), ...readPackages().flatMap(({ files }) => files)].filter(
  ({ path }) => /(?:\.test|\.acceptance)\.ts$|^tests\//.test(path) && !path.startsWith("tests/docs/commands"),
);

describe("the commands of the pages", () => {
  it.each(pages)("should be run by a test, or say why not: %s", (page) => {
    const opened = openedBlocks(page);
    expect(opened.filter((words) => !SHOWN.test(words) && !COMMANDS.test(words))).toEqual([]);
    const marked = opened.flatMap((words) => [...words.matchAll(/ (test|untested)=(.*)/g)]);
    const reasons = marked.flatMap(([, mark, name = ""]) => (mark === "untested" ? [name] : []));
    expect(reasons.filter((reason) => !(reason in WHY_NOT))).toEqual([]);
    if (!marked.some(([, mark]) => mark === "test")) return;
    expect(tests.filter(({ text }) => text.includes(page)).map(({ path }) => path)).not.toEqual([]);
  });

  it("should give no reason that no page uses", () => {
    const used = new Set(pages.flatMap(openedBlocks).map((words) => COMMANDS.exec(words)?.[2]));
    expect(Object.keys(WHY_NOT).filter((reason) => !used.has(reason))).toEqual([]);
  });
});

/** Return the words after the opening marks of each block of a page. */
function openedBlocks(page: string): readonly string[] {
  const marks = [...readFileSync(join(workspaceRoot, page), "utf8").matchAll(/^```(.*)$/gm)].map(
    ([, words = ""]) => words,
  );
  return marks.filter((_, at) => at % 2 === 0);
}
