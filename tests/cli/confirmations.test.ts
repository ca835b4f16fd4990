import { afterEach, describe, expect, it } from "@jest/globals";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();

afterEach(() => rig.removeNodes());

/** Run a command on a terminal whose user answers every question with this word. */
async function answering(word: string, line: string) {
  const asked: string[] = [];
  const ask = async (question: string) => {
    asked.push(question);
    return word;
  };
  return { ...(await rig.run(line, { ask })), asked };
}

describe("destructive verbs", () => {
  it.each(["reject", "delete", "ban"])("should show what depends on a node before they %s it", async (verb) => {
    await rig.register("n1");
    const no = await answering("n", `node ${verb} n1`);
    expect(no).toMatchObject({ code: 1, out: "", asked: [`${verb} node n1? [y/N] `] });
    expect(no.err).toBe("n1 is disconnected, unknown, and runs 0 executions\nnothing was changed\n");
    expect((await rig.run("node list --filter-approval approved -q")).out).toBe("n1\n");
    expect(await answering("n", `node ${verb} n1 --yes`)).toMatchObject({ code: 0, asked: [] });
    if (verb === "ban") await rig.run("node unban n1");
  });

  it("should ask only on a terminal, and only once", async () => {
    await rig.run("webhook set ops --url https://ops.example/hook");
    await rig.run("policy set --group g --selector g --unhealthy-after 70s");
    const token = JSON.parse((await rig.run("token create -o json")).out).token.id;
    const access = JSON.parse((await rig.run("access create ci --role viewer -o json")).out).accessToken?.id;
    const lines = [
      ["webhook delete ops", "delete webhook ops"],
      ["policy delete --group g", "delete the policy of group g"],
      [`token revoke ${token}`, `revoke join token ${token}`],
      ...(access === undefined ? [] : [[`access revoke ${access}`, `revoke access token ${access}`]]),
    ];
    for (const [line = "", question] of lines) {
      expect(await answering("no", line)).toMatchObject({ code: 1, out: "", asked: [`${question}? [y/N] `] });
      expect(await answering("y", line)).toMatchObject({ code: 0, asked: [`${question}? [y/N] `] });
    }
    await rig.register("n1");
    expect(await rig.run("node delete n1")).toMatchObject({ code: 0, out: "Ok: n1 deleted\n" });
  });
});
