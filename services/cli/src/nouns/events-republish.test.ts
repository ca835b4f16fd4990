import { describe, expect, it } from "@jest/globals";
import { runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();

describe("events republish", () => {
  it("should say what is published again", async () => {
    server.events.add();
    server.events.add();
    expect(await runAgainst(server, "events republish --from 1 --request-id r1")).toEqual({
      code: 0,
      err: "",
      out: "revisions 1 to 2 are published again\n",
    });
    expect(server.calls).toEqual(["RepublishEvents 1 r1"]);
  });

  it("should say that there is nothing to publish again", async () => {
    const { out } = await runAgainst(server, "events republish --from 1");
    expect(out).toBe("nothing to publish again: revision 0 is the last that was published\n");
  });

  it("should print the answer as JSON", async () => {
    server.events.add();
    const { out } = await runAgainst(server, "events republish --from 1 --output json");
    expect(JSON.parse(out)).toEqual({ fromRevision: "1", throughRevision: "1" });
  });

  it.each(["events republish --from x", "events republish"])("should refuse '%s'", async (line) => {
    const { code, err } = await runAgainst(server, line);
    expect(code).toBe(2);
    expect(err).toContain("from");
    expect(server.calls).toEqual([]);
  });
});
