import { expect } from 'chai';
import fc from 'fast-check';
import {
  type AccessGrants,
  type AccessRule,
  compileAccess,
  TRANSFORMS,
  type Transform,
} from '../../../shared/access/access-rules.ts';
import type { ApplicationType, Permission } from '../../../shared/access/permissions.ts';

function rule(
  priority: number,
  container: string,
  transform: Transform,
  ...permissions: Permission[]
): AccessRule {
  return { priority, container, transform, permissions };
}

const compile = (rules: AccessRule[], permissions: Permission[] = []) =>
  compileAccess({ type: 'private', rules, permissions });

describe('compileAccess', () => {
  it('denies everything that is not granted', () => {
    const access = compile([], ['token:create']);
    expect(access.decide('token:read', '/')).to.equal(undefined);
    expect(access.holds('token:read')).to.equal(false);
    expect(access.containersFor('token:read')).to.deep.equal([]);
  });

  it('lets the rule with the lowest number decide, in whatever order they come', () => {
    const rules = [
      rule(2, '/pci/', 'reveal', 'token:read', 'token:search'),
      rule(1, '/pci/high/', 'mask', 'token:read'),
    ];
    for (const order of [rules, rules.toReversed()]) {
      const access = compile(order);
      expect(access.decide('token:read', '/pci/high/')).to.equal('mask');
      expect(access.decide('token:read', '/pci/high/deeper/')).to.equal('mask');
      expect(access.decide('token:read', '/pci/low/')).to.equal('reveal');
      expect(access.decide('token:read', '/general/high/')).to.equal(undefined);
      // The first rule covers the container but does not grant token:search: skipped.
      expect(access.decide('token:search', '/pci/high/')).to.equal('reveal');
    }
  });

  it('lets a wide rule with a lower number hide a narrow one', () => {
    const access = compile([
      rule(2, '/a/', 'reveal', 'token:read'),
      rule(1, '/', 'redact', 'token:read'),
    ]);
    expect(access.decide('token:read', '/a/')).to.equal('redact');
  });

  it('does not fall for shared prefixes of a segment', () => {
    const access = compile([rule(1, '/pci/', 'reveal', 'token:read')]);
    for (const container of ['/pcix/', '/pci-2/', '/pc/', '/', '/x/pci/']) {
      expect(access.decide('token:read', container), container).to.equal(undefined);
    }
  });

  it('gives plain permissions their implicit transforms everywhere', () => {
    const permissions: Permission[] = [
      'token:create',
      'token:update',
      'token:read',
      'token:search',
      'token:use',
      'token:delete',
    ];
    const access = compile([], permissions);
    expect(permissions.map((name) => access.decide(name, '/any/'))).to.deep.equal([
      'mask',
      'mask',
      'mask',
      'mask',
      'reveal',
      'redact',
    ]);
  });

  it('asks plain permissions last, after every rule', () => {
    const access = compile([rule(9, '/pci/', 'reveal', 'token:read')], ['token:read']);
    expect(access.decide('token:read', '/pci/')).to.equal('reveal');
    expect(access.decide('token:read', '/bank/')).to.equal('mask');
    expect(access.containersFor('token:read')).to.deep.equal(['/']);
  });

  it('holds what any rule grants', () => {
    const access = compile([rule(1, '/pci/', 'reveal', 'token:use')]);
    expect(access.holds('token:use')).to.equal(true);
    expect(access.containersFor('token:use')).to.deep.equal(['/pci/']);
  });

  it('lists containers without those inside others', () => {
    const access = compile([
      rule(1, '/a/b/', 'mask', 'token:read'),
      rule(2, '/a/', 'reveal', 'token:read'),
      rule(3, '/ab/', 'reveal', 'token:read'),
      rule(4, '/a/', 'redact', 'token:read'),
      rule(5, '/c/', 'redact', 'token:search'),
    ]);
    expect(access.containersFor('token:read')).to.have.members(['/a/', '/ab/']);
  });

  it('grants nothing that the type may not hold, whatever is stored', () => {
    const grants: AccessGrants = {
      permissions: ['token:read', 'token:create', 'application:create'],
      rules: [rule(1, '/', 'reveal', 'token:read', 'token:use')],
    };
    const open = compileAccess({ type: 'public', ...grants });
    expect(open.decide('token:read', '/')).to.equal(undefined);
    expect(open.holds('token:use')).to.equal(false);
    expect(open.holds('application:create')).to.equal(false);
    expect(open.decide('token:create', '/')).to.equal('mask');
    const management = compileAccess({ type: 'management', ...grants });
    expect(management.holds('application:create')).to.equal(true);
    expect(management.holds('token:create')).to.equal(false);
    expect(management.containersFor('token:create')).to.deep.equal([]);
  });

  it('leaves out stored permissions that do not exist', () => {
    const permissions = ['constructor', 'token:everything', 'token:read'];
    const rules = [{ ...rule(1, '/', 'reveal'), permissions: ['__proto__', 'token:steal'] }];
    const access = compileAccess({ type: 'private', permissions, rules });
    expect(access.decide('token:read', '/')).to.equal('mask');
  });

  it('does not change with the arrays it was compiled from', () => {
    const permissions: Permission[] = ['token:use'];
    const own = rule(1, '/a/', 'mask', 'token:read');
    const access = compile([own], permissions);
    own.container = '/';
    own.transform = 'reveal';
    own.permissions.push('token:delete');
    permissions.push('token:delete');
    expect(access.decide('token:read', '/b/')).to.equal(undefined);
    expect(access.decide('token:read', '/a/')).to.equal('mask');
    expect(access.holds('token:delete')).to.equal(false);
  });
});

/** Facts 3.3 and design section 12 in the order of their sentences, without any preparation. */
function referenceDecision(
  { permissions, rules }: AccessGrants,
  permission: Permission,
  container: string,
): Transform | undefined {
  const segments = (path: string): string[] => path.split('/').filter((segment) => segment !== '');
  for (const { container: prefix, transform, permissions: granted } of [...rules].sort(
    (a, b) => a.priority - b.priority,
  )) {
    const inside = segments(prefix).every((segment, i) => segments(container)[i] === segment);
    if (inside && granted.includes(permission)) return transform;
  }
  if (!permissions.includes(permission)) return undefined;
  if (permission === 'token:delete') return 'redact';
  return permission === 'token:use' ? 'reveal' : 'mask';
}

describe('compileAccess against the text of the facts', () => {
  const tokenPermission = fc.constantFrom<Permission>(
    'token:create',
    'token:read',
    'token:use',
    'token:delete',
  );
  const container = fc
    .array(fc.constantFrom('a', 'ab', 'b', 'a-b'), { maxLength: 3 })
    .map((segments) => `/${segments.map((segment) => `${segment}/`).join('')}`);
  const someRule = fc.record({
    priority: fc.integer({ min: 1, max: 20 }),
    container,
    transform: fc.constantFrom(...TRANSFORMS),
    permissions: fc.uniqueArray(tokenPermission, { minLength: 1 }),
  });
  const grants = fc.record({
    rules: fc.uniqueArray(someRule, { maxLength: 8, selector: ({ priority }) => priority }),
    permissions: fc.uniqueArray(tokenPermission),
  });
  const type: ApplicationType = 'private';

  it('decides the same', () => {
    fc.assert(
      fc.property(grants, tokenPermission, container, (given, permission, path) => {
        const decision = compileAccess({ type, ...given }).decide(permission, path);
        expect(decision).to.equal(referenceDecision(given, permission, path));
      }),
      { numRuns: 2000 },
    );
  });

  it('names containers exactly where something is granted, none inside another', () => {
    fc.assert(
      fc.property(grants, tokenPermission, container, (given, permission, path) => {
        const access = compileAccess({ type, ...given });
        const prefixes = access.containersFor(permission);
        const listed = prefixes.some((prefix) => path.startsWith(prefix));
        expect(listed).to.equal(access.decide(permission, path) !== undefined);
        expect(prefixes.length > 0).to.equal(access.holds(permission));
        for (const one of prefixes) {
          expect(prefixes.filter((other) => one.startsWith(other))).to.deep.equal([one]);
        }
      }),
    );
  });
});
