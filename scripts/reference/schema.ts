import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const OURS = "rollcall.";
/** The package of the protocol between agent and keeper on one machine, which is not a public API. */
const LOCAL = "rollcall.keeper.v1";
const MOST_BYTES = 64 * 1024 * 1024;

/** A schema file, with the comment of each of its parts. */
export interface SchemaFile {
  readonly file: FileDescriptorProto;
  /**
   * Return the comment before a part, given the part's path in descriptor.proto's terms; empty if there is none.
   */
  comment(...path: readonly number[]): string;
}

/** Field numbers of descriptor.proto. They form the paths of comments. */
export const PART = { message: 4, enum: 5, service: 6, method: 2, field: 2, nested: 3, nestedEnum: 4, value: 2 };

/** Read Rollcall's own schema files, sorted by name. The stubs have no comments, so buf reads them from proto/. */
export async function readSchema(): Promise<readonly SchemaFile[]> {
  const { stdout } = await promisify(execFile)(`${ROOT}/node_modules/.bin/buf`, ["build", "--output", "-"], {
    cwd: ROOT,
    encoding: "buffer",
    maxBuffer: MOST_BYTES,
  });
  const { file } = fromBinary(FileDescriptorSetSchema, stdout);
  return file.filter((one) => one.package.startsWith(OURS) && one.package !== LOCAL).map(withComments);
}

function withComments(file: FileDescriptorProto): SchemaFile {
  const locations = file.sourceCodeInfo?.location ?? [];
  const comments = new Map(locations.map(({ path, leadingComments }) => [path.join("."), leadingComments.trim()]));
  return { file, comment: (...path) => comments.get(path.join(".")) ?? "" };
}
