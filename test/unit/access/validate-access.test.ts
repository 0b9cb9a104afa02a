import { expect } from 'chai';
import { validateAccess } from '../../../shared/access/validate-access.ts';
import { ApiError, type FieldErrors } from '../../../shared/errors.ts';

type Arguments = Parameters<typeof validateAccess>;

function errorsOf(...args: Arguments): FieldErrors {
  try {
    validateAccess(...args);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).to.equal(400);
    return error.errors ?? {};
  }
  throw new Error('the input was accepted');
}

const rule = {
  description: 'cards',
  priority: 1,
  container: '/PCI/high/',
  transform: 'mask',
  permissions: ['token:read', 'token:read', 'token:search'],
};

const ruleErrors = (change: object): string[] =>
  Object.keys(errorsOf('private', undefined, [{ ...rule, ...change }]));

const WRONG_TYPE = ['Deserialization error, invalid input.'];

describe('validateAccess', () => {
  it('brings rules into their stored form and drops members it does not know', () => {
    expect(
      validateAccess('private', null, [{ ...rule, color: 'red', conditions: null }]),
    ).to.deep.equal({
      permissions: [],
      rules: [
        {
          description: 'cards',
          priority: 1,
          container: '/pci/high/',
          transform: 'mask',
          permissions: ['token:read', 'token:search'],
        },
      ],
    });
  });

  it('keeps repeated permissions once and leaves out an absent description', () => {
    const { description: _, ...bare } = rule;
    const grants = validateAccess('private', ['token:read', 'token:read'], [bare]);
    expect(grants.permissions).to.deep.equal(['token:read']);
    expect(grants.rules[0]).to.not.have.property('description');
  });

  it('requires a permission or a rule', () => {
    for (const nothing of [undefined, null, []]) {
      expect(errorsOf('private', nothing, nothing)).to.deep.equal({
        permissions: ['At least one permission or access rule is required'],
      });
    }
  });

  it('refuses unknown permissions without repeating them', () => {
    const errors = errorsOf('private', ['token:read', 'secret:thing', 5, 'constructor'], []);
    expect(errors).to.deep.equal({
      permissions: [2, 3, 4].map(
        (entry) => `Entry ${entry} is not a known permission: GET /permissions lists them`,
      ),
    });
  });

  it('says which permission a misspelt one was probably meant to be', () => {
    const errors = errorsOf('private', ['tokens:read'], [{ ...rule, permissions: ['token:raed'] }]);
    const advice =
      'Entry 1 is not a known permission: did you mean token:read? GET /permissions lists them';
    expect(errors).to.deep.equal({ permissions: [advice], 'rules.0.permissions': [advice] });
  });

  it('suggests nothing that would be refused as well', () => {
    const none = ['Entry 1 is not a known permission: GET /permissions lists them'];
    expect(errorsOf('public', ['tokens:read'], [])).to.deep.equal({ permissions: none });
    const logs = { ...rule, permissions: ['logs:read'] };
    expect(errorsOf('private', [], [logs])).to.deep.equal({ 'rules.0.permissions': none });
  });

  it('refuses permissions of other application types', () => {
    for (const [type, permission] of [
      ['public', 'token:read'],
      ['public', 'application:read'],
      ['private', 'proxy:create'],
      ['management', 'token:create'],
    ] as const) {
      expect(errorsOf(type, [permission], null)).to.deep.equal({
        permissions: [`Entry 1 is not allowed for applications of type ${type}`],
      });
    }
  });

  it('refuses wrong JSON types where they are', () => {
    for (const wrong of ['token:read', {}, 1, true]) {
      expect(errorsOf('private', wrong, [rule])).to.deep.equal({ permissions: WRONG_TYPE });
      expect(errorsOf('private', ['token:read'], wrong)).to.deep.equal({ rules: WRONG_TYPE });
    }
    for (const wrong of [null, 'x', 1, []]) {
      expect(errorsOf('private', null, [wrong])).to.deep.equal({ 'rules.0': WRONG_TYPE });
    }
  });

  it('refuses rules on management applications', () => {
    expect(errorsOf('management', ['log:read'], [rule])).to.have.all.keys('rules');
    expect(validateAccess('management', ['log:read'], []).permissions).to.deep.equal(['log:read']);
  });

  it('lets rules grant token permissions of the type only', () => {
    expect(ruleErrors({ permissions: ['log:read'] })).to.deep.equal(['rules.0.permissions']);
    expect(ruleErrors({ permissions: [] })).to.deep.equal(['rules.0.permissions']);
    expect(ruleErrors({ permissions: null })).to.deep.equal(['rules.0.permissions']);
    expect(ruleErrors({ permissions: 'token:read' })).to.deep.equal(['rules.0.permissions']);
    expect(errorsOf('public', null, [rule])).to.have.all.keys('rules.0.permissions');
    const open = validateAccess('public', null, [{ ...rule, permissions: ['token:create'] }]);
    expect(open.rules).to.have.length(1);
  });

  it('wants unique integer priorities from 1', () => {
    for (const priority of [0, -1, 1.5, '1', null, undefined, 2_147_483_648, Number.NaN, 1e300]) {
      expect(ruleErrors({ priority }), String(priority)).to.deep.equal(['rules.0.priority']);
    }
    expect(
      errorsOf('private', null, [
        { ...rule, priority: 'a' },
        { ...rule, priority: 'b' },
      ]),
    )
      .to.have.own.property('rules.1.priority')
      .with.length(1);
    const rules = [rule, { ...rule, priority: 2 }, { ...rule, container: '/bank/' }];
    expect(errorsOf('private', null, rules)).to.deep.equal({
      'rules.2.priority': ['Priorities must be unique'],
    });
  });

  it('wants a container path', () => {
    for (const container of ['pci', '/pci', '/pci/*', '/../', '', 1, null, undefined, ['/pci/']]) {
      expect(ruleErrors({ container }), String(container)).to.deep.equal(['rules.0.container']);
    }
  });

  it('wants one of the three transforms', () => {
    for (const transform of ['Reveal', 'none', '', null, undefined, 1, 'constructor']) {
      expect(ruleErrors({ transform }), String(transform)).to.deep.equal(['rules.0.transform']);
    }
  });

  it('refuses descriptions that are too long or not storable', () => {
    for (const description of ['x'.repeat(401), 1, {}, 'a\0b', '\ud800']) {
      expect(ruleErrors({ description })).to.deep.equal(['rules.0.description']);
    }
  });

  it('refuses the conditions of sessions', () => {
    const condition = { attribute: 'id', operator: 'equals', value: 'x' };
    for (const conditions of [[condition], condition, 'x']) {
      expect(ruleErrors({ conditions })).to.deep.equal(['rules.0.conditions']);
    }
    expect(validateAccess('private', null, [{ ...rule, conditions: [] }]).rules).to.have.length(1);
  });

  it('bounds both lists', () => {
    const rules = (count: number) =>
      Array.from({ length: count }, (_, index) => ({ ...rule, priority: index + 1 }));
    expect(validateAccess('private', null, rules(50)).rules).to.have.length(50);
    expect(errorsOf('private', null, rules(51))).to.have.all.keys('rules');
    expect(errorsOf('private', Array(51).fill('token:read'), null)).to.have.all.keys('permissions');
    expect(
      validateAccess('private', Array(50).fill('token:read'), null).permissions,
    ).to.have.length(1);
  });

  it('names everything that is wrong at once', () => {
    const broken = { priority: 0, container: 'x', transform: 'x', permissions: ['x'] };
    expect(errorsOf('private', ['x'], [rule, broken])).to.have.all.keys(
      'permissions',
      'rules.1.priority',
      'rules.1.container',
      'rules.1.transform',
      'rules.1.permissions',
    );
  });
});
