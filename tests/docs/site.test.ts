import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { linkedFiles } from "../../docs/.vitepress/site/copied-files.ts";
import { editPattern } from "../../docs/.vitepress/site/edit-link.ts";
import { anchorsIn, linksIn, siteLink } from "../../docs/.vitepress/site/links.ts";
import {
  linkOf,
  repositoryRoot,
  type SideBarItem,
  sideBar,
  sitePages,
  slugOf,
} from "../../docs/.vitepress/site/pages.ts";
import { searchWeights } from "../../docs/.vitepress/site/search-weights.ts";
import { weightOf } from "../../docs/.vitepress/site/weight-of.ts";
import { declaredKeys } from "../../libs/config/src/keys.ts";
import { ALL_KEYS } from "../../services/rollcall/src/config/all-keys.ts";

const pages = sitePages();
const read = (path: string) => readFileSync(join(repositoryRoot, path), "utf8");

describe("the pages of the documentation", () => {
  it("should link to files, folders and headings that exist", () => {
    const dead = pages.flatMap(({ source }) =>
      linksIn(source, read(source)).flatMap(({ path, anchor, file }) => {
        if (file === null) return [];
        if (!existsSync(join(repositoryRoot, file))) return [`${source}: ${path}`];
        if (anchor === "" || !file.endsWith(".md")) return [];
        return anchorsIn(read(file)).has(anchor) ? [] : [`${source}: ${path}#${anchor}`];
      }),
    );
    expect(dead).toEqual([]);
  });

  it("should be in the side bar, each once, under the kinds of docs/README.md", () => {
    const bar = sideBar(read("docs/README.md"), pages);
    const links = bar.flatMap(linksBelow);
    const wanted = pages.filter(({ source }) => !/^docs\/(README\.md|checklists\/)/.test(source)).map(linkOf);
    expect([...links].sort()).toEqual([...wanted].sort());
    expect(bar.map(({ text }) => text)).toEqual([
      ...["Tutorials", "How-to guides", "Explanation", "Reference", "Internals"],
    ]);
  });

  it("should name keys of the configuration that exist", () => {
    const paths = declaredKeys(ALL_KEYS).flatMap(({ path, aliases = [] }) => [path, ...aliases]);
    const known = new Set(paths.map((path) => path.toLowerCase()));
    const sections = new Set(declaredKeys(ALL_KEYS).map(({ path }) => path.split(".")[0]));
    const named = pages
      // Skip decisions, because they keep the names that were in use when they were made. Skip pages that use names
      // of other programs.
      .filter(
        ({ source }) => !/^docs\/(decisions\/|other-configurations|how-to\/from-|reference\/)|CHANGELOG/.test(source),
      )
      .flatMap(({ source }) =>
        [...read(source).matchAll(/`([A-Z]\w*(?:\.[A-Z]\w*)+)(?:: [^`]*)?`/g)].map(([, path = ""]) => ({
          source,
          path,
        })),
      )
      .filter(({ path }) => sections.has(path.split(".")[0]));
    expect(named.length).toBeGreaterThan(50);
    expect(
      named.filter(({ path }) => !known.has(path.toLowerCase())).map(({ source, path }) => `${source}: ${path}`),
    ).toEqual([]);
  });

  it("should have pictures that are whole and load nothing", () => {
    const folder = join(repositoryRoot, "docs/pictures");
    const used = pages.flatMap(({ source }) => linksIn(source, read(source)).map(({ file }) => file));
    for (const name of readdirSync(folder)) {
      expect(used).toContain(`docs/pictures/${name}`);
      const picture = readFileSync(join(folder, name), "utf8");
      expect(picture).toMatch(
        /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[\s\S]*<title[\s\S]*<desc[\s\S]*<\/svg>\n$/,
      );
      expect(picture.match(/https?:\/\/(?!www\.w3\.org\/2000\/svg)|<script|<foreignObject|@import/g)).toBeNull();
    }
  });
});

describe("siteLink()", () => {
  const bySource = new Map(pages.map((page) => [page.source, page]));

  it.each([
    ["docs/concepts.md", "../ARCHITECTURE.md#parts", "/project/architecture#parts"],
    ["docs/how-to/tls.md", "../runbook.md#rollcallnodespending", "/runbook#rollcallnodespending"],
    ["README.md", "docs/decisions", "/decisions/"],
    ["README.md", "sdk/go/README.md", "/sdk/go"],
    ["docs/runbook.md", "../deploy/monitoring/alerts.yaml", "/files/deploy/monitoring/alerts.yaml"],
  ])("should lead from %s to %s", (source, href, wanted) => {
    expect(siteLink(source, href, bySource)?.href).toBe(wanted);
  });

  it.each(["https://example.org", "mailto:a@example.org", "#here"])("should not change %s", (href) => {
    expect(siteLink("README.md", href, bySource)).toBeNull();
  });
});

describe("linkedFiles()", () => {
  it("should find the files that must be copied into the site, and no pages", () => {
    const files = linkedFiles(repositoryRoot, pages);
    expect(files).toContain("deploy/monitoring/alerts.yaml");
    expect(files.filter((file) => file.endsWith(".md") || file === "docs/decisions")).toEqual([]);
  });
});

describe("anchorsIn()", () => {
  it("should make anchors as repository browsers do, and number those that repeat", () => {
    const markdown = "# A `b` (c)!\n\n## Same\n\n```sh\n# no heading\n```\n\n## Same\n\n### [Link](x.md) here\n";
    expect([...anchorsIn(markdown)]).toEqual(["a-b-c", "same", "same-1", "link-here"]);
    expect(slugOf("OIDC.Issuer")).toBe("oidcissuer");
  });
});

describe("sideBar()", () => {
  it("should put pages without a list last", () => {
    const stray = { source: "docs/stray.md", target: "stray.md", title: "Stray" };
    expect(sideBar("## Tutorial\n\n- [Nothing](gone.md)\n", [stray])).toEqual([
      { text: "Tutorial", collapsed: false, items: [] },
      { text: "Further pages", collapsed: false, items: [{ text: "Stray", link: "/stray" }] },
    ]);
  });
});

describe("editPattern()", () => {
  it.each([
    ["https://git.example/rollcall/rollcall.git", "https://git.example/rollcall/rollcall/edit/main/:path"],
    ["https://user:secret@git.example:8443/a/b/rollcall/", "https://git.example:8443/a/b/rollcall/edit/main/:path"],
    ["git@git.example:rollcall/rollcall.git", "https://git.example/rollcall/rollcall/edit/main/:path"],
    ["ssh://git@git.example/rollcall/rollcall", "https://git.example/rollcall/rollcall/edit/main/:path"],
    ["/srv/git/rollcall", null],
    ["", null],
  ])("should make of the remote %j: %j", (remote, pattern) => {
    expect(editPattern(remote)).toBe(pattern);
  });
});

describe("the search", () => {
  const weights = searchWeights(read("docs/README.md"), pages);

  it("should rank how-to guides above tutorials, explanations, the reference and internals", () => {
    const paths = ["/how-to/drain", "/tutorial", "/concepts", "/reference/cli", "/session-protocol"];
    const found = paths.map((path) => weightOf(`${path}.html#some-heading`, weights));
    expect(found).toEqual([...found].sort((one, other) => other - one));
    expect(new Set(found).size).toBe(found.length);
  });

  it.each([
    ["/decisions/0001-a.html", "/", 0.5],
    ["/decisions/", "/", 0.5],
    ["/docs/how-to/a.html#b", "/docs/", 3],
    ["/a/b.html", "/", 1],
    ["/404.html", "/", 1],
  ])("should weigh %s below %s as its page or its folder: %d", (id, base, weight) => {
    const some = { "/how-to/a": 3, "/decisions/": 0.5 };
    expect(weightOf(id, some, base)).toBe(weight);
  });
});

function linksBelow({ link, items = [] }: SideBarItem): readonly string[] {
  return [...(link === undefined ? [] : [link]), ...items.flatMap(linksBelow)];
}
