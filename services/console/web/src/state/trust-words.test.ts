import { describe, expect, it } from "@jest/globals";
import { TrustSource } from "@rollcall/api/rollcall/node/v1/node_pb";
import { trustWord } from "./trust-words.ts";

describe("trustWord()", () => {
  it.each([
    [{ source: TrustSource.NONE }, "clear text"],
    [{ source: TrustSource.SYSTEM }, "operating system's certificate authorities"],
    [{ source: TrustSource.FILE }, "--ca-file"],
    [{ source: TrustSource.ANNOUNCED }, "announces"],
    [{ source: TrustSource.UNSPECIFIED }, "not reported"],
    // A newer agent reports a source that these pages do not know.
    [{ source: 99 as TrustSource }, "not reported"],
    [undefined, "not reported"],
  ])("should say of %j: %s", (trust, word) => {
    expect(trustWord(trust)).toContain(word);
  });
});
