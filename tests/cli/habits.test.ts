import { afterEach, describe, expect, it } from "@jest/globals";
import { GROUPS } from "../../services/cli/src/all-nouns.ts";
import { FOREIGN_WORDS } from "../../services/cli/src/habits/foreign-words.ts";
import { INFO } from "../../services/registry/src/testing/test-node.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

/** A verb of the executable, such as `up`. */
function verbNamed(name: string) {
  return { name, usage: "", description: "-", run: async () => 0, complete: async () => [] };
}

afterEach(() => rig.removeNodes());

async function registerTwo(): Promise<void> {
  await rig.register("n1", { ...INFO, labels: { zone: "a" } });
  await rig.register("n2", { ...INFO, labels: { zone: "b" } });
}

describe("habits from other programs", () => {
  it("should list the objects of a noun without a verb", async () => {
    await registerTwo();
    const { out } = await rig.run("node list");
    expect(out).toMatch(/^n1 /m);
    for (const line of ["node", "node ls"]) expect((await rig.run(line)).out).toBe(out);
    expect((await rig.run("node --labels zone=a -o name")).out).toBe("n1\n");
    expect((await rig.run("-o name node")).out).toBe("n1\nn2\n");
    for (const noun of ["job", "token", "policy", "brake", "webhook", "audit", "access", "context", "config"]) {
      expect(await rig.run(noun)).toMatchObject({ code: 0 });
    }
    expect((await rig.run("node --help")).out).toContain("Commands:");
  });

  it("should know the same short verbs for every noun", async () => {
    for (const noun of ["node", "job", "token", "policy", "webhook", "audit", "access", "context", "config"]) {
      const listed = await rig.run(`${noun} list`);
      expect(await rig.run(`${noun} ls`)).toEqual(listed);
    }
    const shown = await rig.run("policy show --default");
    expect(shown.code).toBe(0);
    expect(await rig.run("policy describe --default")).toEqual(shown);
    for (const line of ["policy rm", "webhook rm", "context rm", "node rm", "job show", "token describe"]) {
      expect(await rig.run(`${line} --help`)).toMatchObject({ code: 0, err: "" });
    }
  });

  it("should list the groups of commands in the order in which people need them", async () => {
    const { out } = await rig.run("--help", { parts: { verbs: [verbNamed("up"), verbNamed("serve")] } });
    expect(out.match(/^[A-Z][A-Za-z, ]+:$/gm)).toEqual(["Options:", ...Object.values(GROUPS)]);
  });

  it("should understand options of kubectl and docker", async () => {
    await registerTwo();
    expect((await rig.run("node list -q")).out).toBe("n1\nn2\n");
    expect((await rig.run("node list --selector zone=b -q")).out).toBe("n2\n");
    expect((await rig.run("node list --selector zone=b --labels zone=a")).code).toBe(2);
    expect((await rig.run("node list --sort-by created --order-reversed -q")).out).toBe("n2\nn1\n");
    expect((await rig.run("node list --no-headers")).out).toMatch(/^n1 /);
    const path = ["node", "list", "-o", "jsonpath={.nodes[*].id}"];
    expect(await rig.run(path)).toEqual({ code: 0, out: "n1 n2\n", err: "" });
    expect((await rig.run(["node", "list", "-o", "jsonpath={.nodes[}"])).code).toBe(2);
    expect((await rig.run("node cordon --selector zone=a --yes")).out).toMatch(/n1 +Ok/);
    expect((await rig.run("node list -q -o json")).code).toBe(2);
  });

  it("should print a list again until it is interrupted", async () => {
    await registerTwo();
    const { code, out } = await rig.run("node list --watch", { interrupted: AbortSignal.timeout(3_000) });
    expect(code).toBe(130);
    expect(out.match(/^n1 /gm)?.length).toBeGreaterThan(1);
    expect((await rig.run("node list --watch -o json")).code).toBe(2);
  });

  it.each(Object.entries(FOREIGN_WORDS))("should say what to use instead of `%s`", async (words, hint) => {
    expect(await rig.run(words)).toMatchObject({ code: 2, out: "", err: expect.stringContaining(`hint: ${hint}\n`) });
  });

  it("should name only commands that exist", async () => {
    const named = Object.values(FOREIGN_WORDS).flatMap((hint) => [...hint.matchAll(/`rollcall ([a-z]+)( [a-z]+)?/g)]);
    expect(named.length).toBeGreaterThan(30);
    for (const [, noun = "", verb = ""] of named) {
      if (noun === "up" || noun === "serve") continue;
      const { code, err } = await rig.run([noun, ...(verb === "" ? [] : [verb.trim()]), "--help"]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
    }
  });
});
