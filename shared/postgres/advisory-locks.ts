/**
 * The advisory locks of Sallyport, in one place so that no two share a number. Any numbers work; they
 * only have to be ours alone within the database.
 */
export const ADVISORY_LOCKS = {
  migrate: 7_255_914_001,
  first_start: 7_255_914_002,
  purge_deleted_tenants: 7_255_914_003,
  fold_token_counts: 7_255_914_004,
  audit_checkpoint: 7_255_914_010,
} as const;
