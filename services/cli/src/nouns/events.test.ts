import { describe, expect, it } from "@jest/globals";
import { lines, runAgainst, useFakeControlPlane } from "../testing/run.ts";

const server = useFakeControlPlane();

function happened(count: number): void {
  for (let index = 0; index < count; index += 1) server.events.add();
}

/** Follow until something was printed, then press Ctrl-C. */
async function follow(line: string, isEnough: (out: string) => boolean) {
  const ctrlC = new AbortController();
  return runAgainst(server, line, {
    interrupted: ctrlC.signal,
    onOutput: (all) => {
      if (isEnough(all)) ctrlC.abort();
    },
  });
}

const ids = (out: string) => [...out.matchAll(/"id":"(id-\d+)"/g)].map(([, id]) => id);

describe("events", () => {
  it("should print what happened as a table", async () => {
    server.events.add({ type: "node.registered", message: "" });
    server.events.add({
      type: "node.scheduling.changed",
      reason: "OPERATOR_CORDONED",
      before: { scheduling: "ELIGIBLE", holds: [] },
      after: { scheduling: "INELIGIBLE", holds: ["OPERATOR"] },
    });
    expect(await runAgainst(server, "events --wide")).toEqual({
      code: 0,
      err: "",
      out: lines(
        "REVISION  TIME                  TYPE                     SUBJECT  CHANGE                                              REASON             ACTOR        MESSAGE",
        "1         2026-08-06 12:00:01Z  node.registered          n1       PENDING -> APPROVED                                 OPERATOR_APPROVED  token:admin",
        "2         2026-08-06 12:00:02Z  node.scheduling.changed  n2       ELIGIBLE, holds none -> INELIGIBLE, holds OPERATOR  OPERATOR_CORDONED  token:admin  looks good",
      ),
    });
  });

  it("should print CSV", async () => {
    happened(1);
    const { out } = await runAgainst(server, "events --output csv");
    expect(out).toBe(
      "revision,time,type,subject,change,reason,actor,message\r\n" +
        "1,2026-08-06T12:00:01.000Z,node.approved,n1,PENDING -> APPROVED,OPERATOR_APPROVED,token:admin,looks good\r\n",
    );
  });

  it("should print a ListEventsResponse as JSON and YAML, page after page", async () => {
    happened(1_200);
    const { out } = await runAgainst(server, "events --since 0 --output json");
    const answer = JSON.parse(out);
    expect(answer.events).toHaveLength(1_200);
    expect(answer.events[0]).toEqual({
      id: "id-1",
      revision: "1",
      time: "2026-08-06T12:00:01Z",
      type: "node.approved",
      subject: "n1",
      actor: "token:admin",
      reason: "OPERATOR_APPROVED",
      message: "looks good",
      before: { membership: "PENDING" },
      after: { membership: "APPROVED" },
    });
    expect(answer.resumeToken).toBe("token-of-revision-1200");
    const yaml = await runAgainst(server, "events --output yaml --since 0 --limit 1");
    expect(yaml.out).toContain("events:\n  - id: id-1\n");
    expect(yaml.out).toContain('nextPageToken: "1"\n');
  });

  it("should leave moves between replicas out unless they are asked for", async () => {
    happened(1);
    const asked = async (options: string) => {
      await runAgainst(server, `events ${options}`);
      return server.calls.at(-1)?.match(/"excludeTypes":\[[^\]]*\]/)?.[0];
    };
    expect(await asked("--wide")).toBe('"excludeTypes":["node.session.moved"]');
    expect(await asked("--moves")).toBe('"excludeTypes":[]');
    expect(await asked("--type node.session.moved")).toBe('"excludeTypes":[]');
  });

  it("should ask for what was asked", async () => {
    happened(8);
    const asked = "--since 7 --type a,b --node n1 --actor system";
    await runAgainst(server, `events ${asked} --limit 5`);
    await follow(`events --follow ${asked}`, (out) => out.includes("n8"));
    expect(server.calls).toEqual([
      'ListEvents 7 {"pageSize":5,"pageToken":"","subject":"n1","types":["a","b"],"actor":"system","excludeTypes":[]}',
      "WatchEvents afterRevision 7 a,b n1 system",
    ]);
  });

  it.each([
    [
      "events --since yesterday",
      "cannot use 'yesterday' as since value, should be a duration ago such as 1h, a time such as 2026-05-01T12:00:00Z, or a revision\n",
    ],
    [
      "events --follow --since -1",
      "cannot use '-1' as since value, should be a duration ago such as 1h, a time such as 2026-05-01T12:00:00Z, or a revision, or a resume token\n",
    ],
  ])("should refuse `%s` as wrong usage", async (line, err) => {
    expect(await runAgainst(server, line)).toEqual({ code: 2, out: "", err });
  });

  it("should fail with what the server says", async () => {
    happened(5);
    server.events.compactedRevision = 3n;
    const err = "events: events up to revision 3 have been forgotten; list again\n";
    expect(await runAgainst(server, "events --since 1")).toEqual({
      code: 1,
      out: "",
      err: `failed to list ${err}`,
    });
    const followed = await runAgainst(server, "events --follow --since 1 --output json");
    expect(followed).toEqual({ code: 1, out: "", err: `failed to follow ${err}` });
  });
});

describe("events --follow", () => {
  it("should print one object a line until Ctrl-C, and exit with 130", async () => {
    happened(3);
    const outcome = await follow("events --follow --since 0 --output json", (out) => out.includes('"id-3"'));
    expect(outcome).toMatchObject({ code: 130, err: "" });
    const events = outcome.out
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.map(({ id }) => id)).toEqual(["id-1", "id-2", "id-3"]);
    expect(server.calls).toEqual(["WatchEvents fromBeginning true"]);
  });

  it("should begin with now when none of the latest is wanted", async () => {
    happened(2);
    server.events.endings.push("break");
    const ctrlC = new AbortController();
    const { code, out } = await runAgainst(server, "events --follow --last 0", {
      interrupted: ctrlC.signal,
      onError: () => happened(1),
      onOutput: (all) => {
        if (/^3/m.test(all)) ctrlC.abort();
      },
    });
    expect({ code, revisions: out.match(/^\d+/gm) }).toEqual({ code: 130, revisions: ["3"] });
  });

  it("should end after as many as are asked for", async () => {
    happened(9);
    const { code, out } = await runAgainst(server, "events -f --since 2 --limit 3 --output json");
    expect({ code, ids: ids(out) }).toEqual({ code: 0, ids: ["id-3", "id-4", "id-5"] });
  });

  it("should go on by itself after breaks, with nothing missed and nothing twice", async () => {
    happened(2);
    server.events.endings.push("break", "break", "break");
    let known = 0;
    const outcome = await follow("events --follow --since 0 --output json", (out) => {
      const count = ids(out).length;
      // Each break is followed by something that happened meanwhile.
      if (count > known && count < 5) happened(1);
      known = count;
      return count === 6;
    });
    expect(outcome.code).toBe(130);
    expect(ids(outcome.out)).toEqual(["id-1", "id-2", "id-3", "id-4", "id-5", "id-6"]);
  });

  it("should tell of a break, and go on from where a server that cuts it says", async () => {
    happened(2);
    server.events.endings.push("too-slow");
    const { code, out, err } = await follow("events --follow --since 0 --output json", (all) => ids(all).length === 3);
    expect({ code, ids: ids(out) }).toEqual({ code: 130, ids: ["id-1", "id-2", "id-2"] });
    expect(err).toBe("warning: the stream broke: the watcher does not keep up; resuming\n");
    expect(server.calls.at(-1)).toBe("WatchEvents resumeToken token-of-revision-1");
  });
});
