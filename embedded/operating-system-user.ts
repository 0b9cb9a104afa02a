/**
 * The operating-system user that Postgres runs as. Postgres refuses root, so root hands it to the
 * unprivileged user; everybody else runs it as themselves.
 */

/** `nobody` on every Linux. */
const UNPRIVILEGED_ID = 65_534;

export interface PostgresUser {
  readonly uid: number;
  readonly gid: number;
  /**
   * Another user than ours: Postgres then reaches its directories through inherited descriptors
   * (`/proc/self/fd/N`), because a directory above them may be closed to it, as /root is.
   */
  readonly foreign: boolean;
}

/** Throws where root cannot be helped: the descriptors need Linux. */
export function postgresUser(): PostgresUser {
  const uid = process.getuid?.();
  const gid = process.getgid?.();
  if (uid === undefined || gid === undefined) {
    throw new Error('the embedded Postgres needs Linux or macOS; set DATABASE_URL instead');
  }
  if (uid !== 0) return { uid, gid, foreign: false };
  if (process.platform !== 'linux') {
    throw new Error('the embedded Postgres does not run as root on this system: use another user');
  }
  return { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID, foreign: true };
}
