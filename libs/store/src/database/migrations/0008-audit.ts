import { sql } from "kysely";
import type { Migration } from "kysely/migration";

/** The audit log, as a chain of hashes. */
export const audit: Migration = {
  async up(db) {
    await sql`
      create table audit_log (
        sequence bigint not null,
        at timestamptz(3) not null,
        actor text collate "C" not null,
        method text collate "C" not null,
        target text collate "C" not null,
        reason text not null,
        outcome text collate "C" not null,
        address text not null,
        request_id text not null,
        previous_hash bytea not null,
        hash bytea not null,
        constraint audit_log_pkey primary key (sequence)
      )`.execute(db);
    await sql`
      comment on table audit_log is
        'Every mutation by an authenticated caller, refusals included: a sequence without gaps. Each row has a hash over its fields and the hash of the previous row. Written only by append_audit, never updated, never deleted.'
    `.execute(db);
    await sql`create index audit_log_actor_idx on audit_log (actor, sequence)`.execute(db);
    await sql`create index audit_log_target_idx on audit_log (target, sequence)`.execute(db);
    await sql`create index audit_log_method_idx on audit_log (method, sequence)`.execute(db);
    await sql`create index audit_log_at_idx on audit_log (at)`.execute(db);
    await sql`
      create index audit_log_refused_idx on audit_log (outcome, sequence) where outcome <> 'OK'
    `.execute(db);
    await createHead().execute(db);
    await sql`
      comment on table audit_head is
        'One row: the number of rows in audit_log and the hash of the last one, so that a removal of the newest rows is detected too. Written only by append_audit.'
    `.execute(db);
    await sql`insert into audit_head default values`.execute(db);
    await hashFunction().execute(db);
    await appendAuditFunction().execute(db);
    await appendLogFunction().execute(db);
  },
};

function createHead() {
  return sql`
    create table audit_head (
      singleton boolean not null default true,
      sequence bigint not null default 0,
      hash bytea not null default decode(repeat('00', 32), 'hex'),
      constraint audit_head_pkey primary key (singleton),
      constraint audit_head_is_one_row check (singleton),
      constraint audit_head_hash_size check (octet_length(hash) = 32)
    ) with (fillfactor = 50)`;
}

/**
 * Uses the same encoding as libs/store/src/access/audit-hash.ts: always change both. Each field is BYTES:TEXT, so that
 * no text can move unnoticed from the end of one field to the start of the next. It is written out in PL/pgSQL, because
 * calling an SQL function costs ten times as much, and all appenders wait for it.
 */
function hashFunction() {
  const field = (text: string) => `octet_length(convert_to(${text}, 'UTF8')) || ':' || ${text} || ','`;
  const fields = ["actor", "method", "target", "reason", "outcome", "address", "request_id"];
  return sql`
    create function audit_hash(
      previous_hash bytea, sequence bigint, at timestamptz, actor text, method text, target text, reason text, outcome text,
      address text, request_id text
    ) returns bytea language plpgsql immutable as $$
    declare
      at_ms constant text := (extract(epoch from at) * 1000)::bigint;
    begin
      return sha256(convert_to(
        '17:rollcall-audit-v1,64:' || encode(previous_hash, 'hex') || ','
        || length(sequence::text) || ':' || sequence || ',' || length(at_ms) || ':' || at_ms || ','
        || ${sql.raw(fields.map(field).join(" || "))}, 'UTF8'));
    end
    $$`;
}

/**
 * Takes the same lock as append_events, so that each row follows the previously committed one. Each statement of a
 * volatile function sees all rows committed by then. So the head that is read under the lock is the last one.
 */
function appendAuditFunction() {
  return sql`
    create function append_audit(batch jsonb) returns void language plpgsql volatile as $$
    declare
      now_at constant timestamptz(3) := clock_timestamp();
      first_sequence bigint;
      last_sequence bigint;
      last_hash bytea;
      hashes bytea[] := '{}';
      entry jsonb;
    begin
      if jsonb_array_length(batch) = 0 then
        return;
      end if;
      perform pg_advisory_xact_lock(5139811260874521047);
      select head.sequence, head.hash into strict last_sequence, last_hash from audit_head as head;
      first_sequence := last_sequence + 1;
      hashes := array_append(hashes, last_hash);
      for entry in select item.entry from jsonb_array_elements(batch) with ordinality as item (entry, position) order by item.position loop
        last_sequence := last_sequence + 1;
        last_hash := audit_hash(
          last_hash, last_sequence, now_at, entry ->> 'actor', entry ->> 'method', entry ->> 'target', entry ->> 'reason',
          entry ->> 'outcome', entry ->> 'address', entry ->> 'requestId');
        hashes := array_append(hashes, last_hash);
      end loop;
      insert into audit_log
        (sequence, at, actor, method, target, reason, outcome, address, request_id, previous_hash, hash)
      select
        first_sequence + item.position - 1,
        now_at,
        item.entry ->> 'actor',
        item.entry ->> 'method',
        item.entry ->> 'target',
        item.entry ->> 'reason',
        item.entry ->> 'outcome',
        item.entry ->> 'address',
        item.entry ->> 'requestId',
        hashes[item.position],
        hashes[item.position + 1]
      from jsonb_array_elements(batch) with ordinality as item (entry, position);
      update audit_head as head set sequence = last_sequence, hash = last_hash;
    end
    $$`;
}

function appendLogFunction() {
  return sql`
    create function append_log(event_batch jsonb, audit_batch jsonb) returns bigint language plpgsql volatile as $$
    declare
      revision bigint;
    begin
      revision := append_events(event_batch);
      perform append_audit(audit_batch);
      return revision;
    end
    $$`;
}
