import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { FaultProxy } from "../../libs/testkit/src/wire/fault-proxy.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

/** Append this many events about a subject to the log. */
async function happen(subject: string, count: number): Promise<void> {
  const events = Array.from({ length: count }, (_, index) => ({
    type: "node.approved" as const,
    subject,
    actor: "token:ops",
    reason: "OPERATOR_APPROVED",
    message: `change ${index}`,
    before: { membership: "PENDING" },
    after: { membership: "APPROVED" },
  }));
  await rig.store.change(async () => ({ result: null, events }));
}

async function eventsOf(line: string): Promise<{ message: string; subject: string; revision: string }[]> {
  const { code, out, err } = await rig.run(`${line} -o json`);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out).events;
}

const messagesOf = async (line: string) => (await eventsOf(line)).map(({ message }) => message);
const messagesIn = (out: string) => [...out.matchAll(/"message":"(change \d+)"/g)].map(([, message]) => message);

/** Follow the log until enough was printed, then press Ctrl-C. */
async function follow(line: string, isEnough: (out: string) => boolean, onOutput: (out: string) => void = () => {}) {
  const ctrlC = new AbortController();
  return rig.run(`events --follow ${line} -o json`, {
    interrupted: ctrlC.signal,
    onOutput: (all) => {
      if (isEnough(all)) ctrlC.abort();
      else onOutput(all);
    },
  });
}

describe("events", () => {
  beforeAll(async () => {
    await happen("old", 3);
    await happen("many", 600);
  });

  it("should print the latest events, up to --last or --limit, and 50 by default", async () => {
    expect(await messagesOf("events --last 2")).toEqual(["change 598", "change 599"]);
    expect(await messagesOf("events --limit 2")).toEqual(["change 598", "change 599"]);
    expect(await messagesOf("events")).toHaveLength(50);
  });

  it("should look back as far as the filters need", async () => {
    expect(await messagesOf("events --node old --last 2")).toEqual(["change 1", "change 2"]);
    expect(await messagesOf("events --node old")).toHaveLength(3);
    expect(await messagesOf("events --node nobody")).toEqual([]);
    expect(await messagesOf("events --type node.rejected --last 5")).toEqual([]);
    expect(await messagesOf("events --actor token:ops --last 603")).toHaveLength(603);
  });

  it("should print what happened since a revision or a time, and until one", async () => {
    const all = await eventsOf("events --since 0 --node many");
    expect(all).toHaveLength(600);
    const { revision = "" } = all[9] ?? {};
    expect(await messagesOf(`events --since ${revision} --node many --limit 2`)).toEqual(["change 10", "change 11"]);
    expect(await messagesOf("events --since 1h --node many --last 1")).toEqual(["change 599"]);
    expect(await messagesOf("events --since 1h --node old")).toHaveLength(3);
    expect(await messagesOf("events --until 1h")).toEqual([]);
    expect(await messagesOf("events --since 2020-01-01 --until 2020-01-02")).toEqual([]);
  });

  it("should print tables, CSV, names and a ListEventsResponse", async () => {
    const { out } = await rig.run("events --last 1 --wide");
    expect(out).toMatch(/^REVISION +TIME +TYPE +SUBJECT +CHANGE +REASON +ACTOR +MESSAGE\n/);
    expect(out).toMatch(
      /\n\d+ +\d{4}-\S+ \S+Z +node\.approved +many +pending -> approved +operator approved +token:ops +change 599\n$/,
    );
    const csv = (await rig.run("events --last 1 -o csv")).out.split("\r\n");
    expect(csv[0]).toBe("revision,time,type,subject,change,reason,actor,message");
    expect(csv[1]).toMatch(/^\d+,\S+Z,node\.approved,many,PENDING -> APPROVED,OPERATOR_APPROVED,token:ops,change 599$/);
    const answer = JSON.parse((await rig.run("events --since 0 --limit 1 -o json")).out);
    expect(answer).toMatchObject({
      nextPageToken: expect.stringMatching(/./),
      resumeToken: expect.stringMatching(/./),
    });
    expect((await rig.run("events --last 1 -o yaml")).out).toMatch(/^events:\n {2}- id: /);
  });

  it("should leave out moves between replicas unless they are requested", async () => {
    await rig.store.change(async () => ({
      result: null,
      events: [
        {
          ...{ type: "node.session.moved", subject: "moved", actor: "system", reason: "", message: "change 0" },
          ...{ before: null, after: null },
        },
      ],
    }));
    expect(await messagesOf("events --node moved")).toEqual([]);
    expect(await messagesOf("events --node moved --moves")).toEqual(["change 0"]);
    expect(await messagesOf("events --node moved --type node.session.moved")).toEqual(["change 0"]);
  });

  it.each([
    ["events --since yesterday", "cannot use 'yesterday' as since value, should be a duration ago such as 1h"],
    ["events --follow --since -1", "or a revision, or a resume token"],
    ["events --until soon", "cannot use 'soon' as until value"],
    ["events --last few", "cannot use 'few' as last value"],
    ["events --follow --until 1h", "--follow and --until cannot be combined"],
    ["events --follow --since 7 --last 3", "--last requires a time in --since"],
  ])("should refuse `%s` before it makes a call", async (line, message) => {
    const answer = await rig.run(line, { env: { ROLLCALL_SERVER: "127.0.0.1:1" } });
    expect(answer).toMatchObject({ code: 2, out: "", err: expect.stringContaining(message) });
  });
});

describe("events --follow", () => {
  let proxy: FaultProxy;
  beforeAll(async () => {
    proxy = await FaultProxy.start(Number(rig.address.split(":")[1]));
  });
  afterAll(() => proxy.close());

  it("should print the latest and continue with new ones, until Ctrl-C", async () => {
    await happen("first", 3);
    const { code, out, err } = await follow(
      "--node first --last 2",
      (all) => all.includes("change 7"),
      () => void happen("first", 8),
    );
    expect({ code, err }).toEqual({ code: 130, err: "" });
    expect(messagesIn(out).slice(0, 3)).toEqual(["change 1", "change 2", "change 0"]);
  });

  it("should start with new events when none of the latest is wanted, or at a time or a revision", async () => {
    await happen("second", 2);
    let begun = false;
    const late = rig.run("events --follow --node second --last 0 --limit 1 -o json", {
      onOutput: () => {
        begun = true;
      },
    });
    // The test cannot see when the stream starts, so it appends events until the stream has printed one.
    while (!begun) await happen("second", 1);
    expect(messagesIn((await late).out)).toEqual(["change 0"]);
    const { out } = await follow("--node second --since 1h", (all) => messagesIn(all).length >= 2);
    expect(messagesIn(out).slice(0, 2)).toEqual(["change 0", "change 1"]);
    const { revision = "" } = (await eventsOf("events --since 0 --node second"))[0] ?? {};
    const after = await rig.run(`events -f --node second --since ${revision} --limit 1 -o json`);
    expect({ code: after.code, messages: messagesIn(after.out) }).toEqual({ code: 0, messages: ["change 1"] });
  });

  it("should end after the requested number, also when events arrive one by one", async () => {
    const following = rig.run("events -f --node third --limit 3 -o json", {
      onOutput: (all) => {
        if (messagesIn(all).length < 3) void happen("third", 1);
      },
    });
    await happen("third", 1);
    const { code, out } = await following;
    expect({ code, count: messagesIn(out).length }).toEqual({ code: 0, count: 3 });
  });

  it("should resume automatically after breaks, without missing or repeated events", async () => {
    const ctrlC = new AbortController();
    let known = 0;
    await happen("fourth", 1);
    const { code, out, err } = await rig.run("events --follow --node fourth -o json", {
      env: { ROLLCALL_SERVER: `127.0.0.1:${proxy.port}` },
      interrupted: ctrlC.signal,
      onOutput: (all) => {
        const revisions = [...all.matchAll(/"revision":"(\d+)"/g)].length;
        if (revisions >= 6) ctrlC.abort();
        if (revisions <= known) return;
        known = revisions;
        proxy.reset();
        void happen("fourth", 1);
      },
    });
    expect(code).toBe(130);
    const revisions = [...out.matchAll(/"revision":"(\d+)"/g)].map(([, revision]) => Number(revision));
    expect(revisions).toEqual([...new Set(revisions)].sort((left, right) => left - right));
    expect(
      (await eventsOf("events --since 0 --node fourth")).slice(0, 6).map(({ revision }) => Number(revision)),
    ).toEqual(revisions.slice(0, 6));
    expect(err).toMatch(/^connection lost: .*; trying again\n/);
  });
});

describe("events republish", () => {
  it("should say what is published again, and require a revision", async () => {
    const { code, out } = await rig.run("events republish --from 1");
    expect({ code, out }).toEqual({
      code: 0,
      out: "nothing to publish again: the last published revision is 0\n",
    });
    const json = await rig.run("events republish --from 1 -o json");
    expect(JSON.parse(json.out)).toEqual({ fromRevision: "1", throughRevision: "0" });
    await rig.store.db.updateTable("event_relay").set({ revision: 3n }).execute();
    const again = await rig.run("events republish --from 2 --request-id r1");
    expect(again).toEqual({ code: 0, out: "publishing revisions 2 to 3 again\n", err: "" });
    for (const line of ["events republish --from x", "events republish"]) {
      expect(await rig.run(line)).toMatchObject({ code: 2, err: expect.stringContaining("from") });
    }
  });
});
