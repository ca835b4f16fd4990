export {
  type EmbeddedPostgres,
  EmbeddedPostgresError,
  type EmbeddedPostgresOptions,
  findEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
export { type BegunRestore, beginRestore, type RestoreWish } from "./restore-mark.ts";
