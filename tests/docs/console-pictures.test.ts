import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { workspaceRoot } from "../support/workspace.ts";

const read = (path: string) => readFileSync(join(workspaceRoot, path), "utf8");

describe("the pictures of the console", () => {
  it("should be taken of every page, and shown in the docs", () => {
    const routes = [...read("services/console/web/src/app/router.tsx").matchAll(/\bpage\("([^"]+)"/g)].map(
      ([, path = ""]) => path,
    );
    expect(routes.length).toBeGreaterThan(10);
    const taken = [...read("scripts/screenshots.mjs").matchAll(/^ {2}"?([a-z-]+)"?: "(\/[^"]*)",$/gm)].map(
      ([, name = "", path = ""]) => ({ name, path: path.split("?")[0] ?? "" }),
    );
    const page = read("docs/console-pages.md");
    const untaken = routes.filter((route) => {
      const shape = new RegExp(`^${route.replaceAll(/\$\w+/g, "[^/]+")}$`);
      return !taken.some(({ path }) => shape.test(path));
    });
    const unshown = taken.filter(({ name }) => !page.includes(`(images/console/all-${name}.webp)`));
    expect({ untaken, unshown }).toEqual({ untaken: [], unshown: [] });
  });
});
