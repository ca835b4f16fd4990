import { execFileSync } from "node:child_process";
import { describe, expect, it } from "@jest/globals";
import { completionScript } from "./scripts.ts";

describe("completionScript()", () => {
  it("should pass the typed words in bash, with the word under the cursor last", () => {
    const asked = execFileSync(
      "bash",
      [
        "-c",
        `
      rollcall() { printf '%s\\t%s\\n' "[$*]" words one\\ two three; }
      ${completionScript("bash")}
      COMP_WORDS=(rollcall node approve ""); COMP_CWORD=3
      _rollcall
      printf '%s\\n' "\${COMPREPLY[@]}"
    `,
      ],
      { encoding: "utf8" },
    );
    expect(asked).toBe("[__complete node approve ]\none two\n");
  });
});
