import { describe, expect, it } from "@jest/globals";
import { EncodedForms } from "./watch-nodes.ts";

describe("EncodedForms", () => {
  it("should share encoded messages among watchers of the same fields, until the last one leaves", () => {
    const forms = new EncodedForms();
    const first = forms.open("id");
    expect(first).not.toBeNull();
    expect(forms.open("id")).toBe(first);
    forms.close("id");
    expect(forms.open("id")).toBe(first);
    forms.close("id");
    forms.close("id");
    expect(forms.open("id")).not.toBe(first);
  });

  it("should cache nothing for masks beyond the sixteenth, until another one is gone", () => {
    const forms = new EncodedForms();
    for (let mask = 0; mask < 16; mask++) expect(forms.open(`mask-${mask}`)).not.toBeNull();
    expect(forms.open("one more")).toBeNull();
    forms.close("mask-3");
    expect(forms.open("one more")).not.toBeNull();
  });
});
