// Functions that find the commit of a build.
import { spawnSync } from "node:child_process";

/**
 * The commit of a checkout and its time, for `rollcall version`. If files have changed, "+changes" is appended to
 * the commit. Empty without git or a checkout.
 */
export function commitInfo(folder) {
  const [commit, committedS] = git(folder, ["log", "-1", "--format=%H %ct"]).split(" ");
  if (committedS === undefined) return {};
  const changed = git(folder, ["status", "--porcelain"]) !== "";
  return {
    commit: changed ? `${commit}+changes` : commit,
    commitTime: new Date(Number(committedS) * 1000).toISOString(),
  };
}

function git(folder, words) {
  const { status, stdout } = spawnSync("git", ["-C", folder, ...words], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : "";
}
