import { describe, expect, it } from "@jest/globals";
import { readBytes, readMillicores } from "./quantity.ts";

describe("readBytes()", () => {
  it.each([
    ["0", 0],
    ["1048576", 1_048_576],
    ["4k", 4_000],
    ["4K", 4_000],
    ["4KB", 4_000],
    ["4Ki", 4_096],
    ["4KiB", 4_096],
    ["512M", 512e6],
    ["512Mb", 512e6],
    ["512mb", 512e6],
    ["512Mi", 512 * 1_024 ** 2],
    ["512mi", 512 * 1_024 ** 2],
    ["4g", 4e9],
    ["4GB", 4e9],
    [" 4 GiB ", 4 * 1_024 ** 3],
    ["1.5G", 1.5e9],
    [".5Gi", 512 * 1_024 ** 2],
    ["2.Ki", 2_048],
    ["2T", 2e12],
    ["2Ti", 2 * 1_024 ** 4],
    ["3P", 3e15],
    ["1Pi", 1_024 ** 5],
    ["128e6", 128e6],
    ["1E3", 1_000],
    ["100B", 100],
  ])("should read %j as %i bytes", (text, value) => {
    expect(readBytes(text)).toEqual({ ok: true, value });
  });

  it.each([
    ["512m", "ambiguous"],
    ["1.5", "a fraction of a byte"],
    ["1.5B", "a fraction of a byte"],
    ["1E", "more than 8 PiB"],
    ["9Pi", "more than 8 PiB"],
    ["9e99", "more than 8 PiB"],
    ["", "not an amount of bytes"],
    ["-1", "not an amount of bytes"],
    ["+1", "not an amount of bytes"],
    ["1u", "not an amount of bytes"],
    ["4XB", "not an amount of bytes"],
    ["4Gi B", "not an amount of bytes"],
    ["1,5G", "not an amount of bytes"],
    ["1_000", "not an amount of bytes"],
    ["0x10", "not an amount of bytes"],
    ["256MB2", "not an amount of bytes"],
    ["Gi", "not an amount of bytes"],
    ["80%", "not an amount of bytes"],
  ])("should refuse %j", (text, problem) => {
    expect(readBytes(text)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});

describe("readMillicores()", () => {
  it.each([
    ["0", 0],
    ["2", 2_000],
    ["0.125", 125],
    [".5", 500],
    ["2.", 2_000],
    ["250m", 250],
    [" 1 ", 1_000],
  ])("should read %j as %i thousandths", (text, value) => {
    expect(readMillicores(text)).toEqual({ ok: true, value });
  });

  it.each([
    ["0.0001", "less than a thousandth"],
    ["", "not a number of processors"],
    ["-1", "not a number of processors"],
    ["0.5m", "not a number of processors"],
    ["1k", "not a number of processors"],
    ["1e3", "not a number of processors"],
    ["4GB", "not a number of processors"],
    ["1,5", "not a number of processors"],
  ])("should refuse %j", (text, problem) => {
    expect(readMillicores(text)).toEqual({ ok: false, problem: expect.stringContaining(problem) });
  });
});
