import { describe, expect, it } from "@jest/globals";
import { editField, firstJob, JOB_FIELDS } from "./job-fields.ts";

function fieldOf(name: string) {
  const field = JOB_FIELDS.find((one) => one.name === name);
  if (field === undefined) throw new Error(`no field ${name}`);
  return field;
}

/** Edit fields of a new job in turn. Returns the specification, or the first error. */
function edited(...edits: readonly (readonly [field: string, text: string])[]) {
  let spec = firstJob();
  for (const [name, text] of edits) {
    const edit = editField(fieldOf(name), spec, text);
    if (!edit.ok) return edit.message;
    spec = edit.spec;
  }
  return spec;
}

describe("editField()", () => {
  it.each([
    ["name", "web", { name: "web" }],
    ["count", "3", { count: 3 }],
    ["count", "", { task: { case: "process" } }],
    ["cores", "0.5", { resources: { millicores: 500 } }],
    ["memory", "512 MiB", { resources: { memoryBytes: 536_870_912n } }],
    ["memory", "1.5Gi", { resources: { memoryBytes: 1_610_612_736n } }],
    ["memory", "1000", { resources: { memoryBytes: 1_000n } }],
    ["gpus", "2", { resources: { gpus: 2 } }],
    ["selector", "zone=a,gpu", { selector: "zone=a,gpu" }],
    [
      "command",
      "sh -c 'echo it' \"a b\" c\\ d",
      { task: { value: { command: ["sh", "-c", "echo it", "a b", "c d"] } } },
    ],
    ["image", "nginx:1", { task: { case: "docker", value: { image: "nginx:1", command: ["sleep", "600"] } } }],
  ])("should set %s to %s", (name, text, expected) => {
    expect(edited([name, text])).toMatchObject(expected);
  });

  it.each([
    ["name", "", "a name is missing"],
    ["count", "-1", "a whole number"],
    ["cores", "many", "a number, for example 0.5"],
    ["memory", "12 apples", "an amount, for example 512 MiB"],
    ["gpus", "0.5", "a whole number"],
    ["command", "", "a command or an image is missing"],
    ["command", "sh -c 'x", "a quotation mark is not closed"],
  ])("should refuse %s %j", (name, text, message) => {
    expect(edited([name, text])).toBe(message);
  });

  it("should refuse a wrong selector, and keep other fields of a task", () => {
    expect(edited(["selector", "zone in"])).toEqual(expect.any(String));
    expect(edited(["image", "nginx"], ["command", ""], ["image", ""])).toBe("a command or an image is missing");
    expect(edited(["image", "nginx"], ["image", ""])).toMatchObject({ task: { case: "process" } });
  });

  it.each([
    ["command", "sh -c 'it'\\''s' ''"],
    ["memory", "1.3 GiB"],
    ["memory", "1.23456 GiB"],
    ["cores", "0.25"],
  ])("should read what it wrote: %s %s", (name, text) => {
    const spec = edited([name, text]);
    if (typeof spec === "string") throw new Error(spec);
    expect(edited([name, fieldOf(name).read(spec)])).toEqual(spec);
  });
});
