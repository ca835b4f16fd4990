import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { eventually } from "../../libs/testkit/src/index.ts";
import { TestBrowser } from "../../services/console/src/testing/console-rig.ts";
import { useControlPlane } from "./support/cli-rig.ts";

const rig = useControlPlane();
const URL_LINE = /(http:\/\/127\.0\.0\.1:\d+)\/sign-in#code=(rcc_[\w-]{43})/;

/** A substitute for the desktop's opener. It records its arguments and who can read them. */
const OPENER = `#!/bin/sh
file="\${1#file://}"
echo "$#" "$1" > "$SEEN/words"
stat -c %a "$file" "$(dirname "$file")" > "$SEEN/modes"
cp "$file" "$SEEN/page.html"
`;

let desktop: { readonly bin: string; readonly seen: string; readonly temporary: string };
beforeAll(() => {
  desktop = { bin: join(rig.folder, "bin"), seen: join(rig.folder, "seen"), temporary: join(rig.folder, "tmp") };
  for (const folder of Object.values(desktop)) mkdirSync(folder);
  writeFileSync(join(desktop.bin, "xdg-open"), OPENER);
  chmodSync(join(desktop.bin, "xdg-open"), 0o755);
});

const surroundings = (path: string) => ({
  env: {
    ROLLCALL_SERVER: rig.address,
    ROLLCALL_TOKEN: rig.token,
    PATH: path,
    SEEN: desktop.seen,
    TMPDIR: desktop.temporary,
  },
});
const browser = () => new TestBrowser(Number(rig.address.split(":")[1]), `http://${rig.address}`);

describe("console", () => {
  it("should open the browser with a code that no other user can read, and exit after the sign-in", async () => {
    const { bin, seen, temporary } = desktop;
    const window = browser();
    let signingIn: Promise<unknown> = Promise.resolve();
    const answer = await rig.run("console", {
      ...surroundings(`${bin}:${process.env.PATH}`),
      onError: (all) => {
        if (!all.includes("Waiting")) return;
        const code = URL_LINE.exec(readFileSync(join(seen, "page.html"), "utf8"))?.[2];
        signingIn = window.signIn({ code });
      },
    });
    await signingIn;
    expect(answer).toMatchObject({ code: 0, out: "Signed in\n" });
    const words = readFileSync(join(seen, "words"), "utf8");
    expect(words).toMatch(/^1 file:\/\/\S+\/rollcall-console-\w+\/sign-in\.html\n$/);
    expect(words).not.toContain("rcc_");
    expect(readFileSync(join(seen, "modes"), "utf8")).toBe("600\n700\n");
    // No file is left behind.
    expect(readdirSync(temporary)).toEqual([]);
    expect((await window.call("SignOut")).status).toBe(200);
  });

  it("should print the address if no browser should be opened", async () => {
    const { code, out } = await rig.run("console --no-open");
    expect(code).toBe(0);
    const [, base, secret] = URL_LINE.exec(out) ?? [];
    expect(base).toBe(`http://${rig.address}`);
    expect((await browser().signIn({ code: secret })).status).toBe(200);
  });

  it("should say what to do if no browser can be opened, and leave no file behind", async () => {
    const { code, err } = await rig.run("console", surroundings(join(rig.folder, "nothing-there")));
    expect(code).toBe(1);
    expect(err).toContain("cannot open a browser: xdg-open: ENOENT");
    expect(err).toContain("--no-open");
    expect(readdirSync(desktop.temporary)).toEqual([]);
  });

  it("should not create a code for an address where the browser could not sign in", async () => {
    const { code, err } = await rig.run("console --no-open --server http://rollcall.example:7700 --token x");
    expect(code).toBe(1);
    expect(err).toContain("over clear text");
    expect(err).toContain("ssh -L 7700:127.0.0.1:7700");
  });

  it("should end all sessions of the caller on request", async () => {
    const { out } = await rig.run("console --no-open");
    const window = browser();
    await window.signIn({ code: URL_LINE.exec(out)?.[2] });
    const answer = await rig.run("console --sign-out");
    expect([answer.code, answer.out]).toEqual([0, expect.stringMatching(/^[1-9]\d* sessions? ended\n$/)]);
    await eventually(async () => expect((await window.call("SignOut")).reason).toBe("TOKEN_REVOKED"));
    expect((await rig.run("console --sign-out")).out).toBe("0 sessions ended\n");
  });

  it("should show sessions among the access tokens, and end one", async () => {
    const { out } = await rig.run("console --no-open");
    const window = browser();
    const signedIn = await window.signIn({ code: URL_LINE.exec(out)?.[2] });
    const id = String(signedIn.body.sessionId);
    const list = await rig.run("access list --output wide");
    expect(list.out).toMatch(new RegExp(`^${id} +console from 127\\.0\\.0\\.1 +admin +valid .* session$`, "m"));
    expect((await rig.run(`access revoke ${id}`)).code).toBe(0);
    await eventually(async () => expect((await window.call("SignOut")).reason).toBe("TOKEN_REVOKED"));
  });
});
