export { type BegunRestore, beginRestore, type RestoreWish } from "./data/restore-mark.ts";
export {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  findEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
