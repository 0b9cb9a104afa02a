import { expect } from 'chai';
import {
  APPLICATION_TYPES,
  isAllowedFor,
  isApplicationType,
  isPermission,
  isTokenPermission,
  listPermissions,
} from '../../../shared/access/permissions.ts';

const names = (type?: (typeof APPLICATION_TYPES)[number]): string[] =>
  listPermissions(type).map((permission) => permission.type);

describe('permissions', () => {
  it('are the thirty of the API, each with a description and at least one type', () => {
    expect(new Set(names())).to.have.property('size', 30);
    for (const { type, description, application_types } of listPermissions()) {
      expect(type).to.match(/^[a-z]+(:[a-z]+){1,2}$/);
      expect(description).to.match(/^[A-Z][a-z ]+$/);
      expect(application_types).to.not.have.length(0);
    }
  });

  it('of public applications are two, of private ones six, of management ones the rest', () => {
    expect(names('public')).to.have.members(['token:create', 'token:update']);
    expect(names('private')).to.have.members([
      'token:create',
      'token:read',
      'token:search',
      'token:update',
      'token:delete',
      'token:use',
    ]);
    expect(names('management')).to.have.length(24);
    expect(names('management').filter((name) => name.startsWith('token:'))).to.deep.equal([]);
  });

  it('have the documented sample', () => {
    expect(listPermissions()).to.deep.include({
      type: 'token:read',
      description: 'Read tokens',
      application_types: ['private'],
    });
  });

  it('are matched by their exact own name', () => {
    expect(isPermission('token:read')).to.equal(true);
    for (const name of [
      'Token:Read',
      'token:read ',
      'token',
      'constructor',
      '__proto__',
      '',
      1,
      null,
    ]) {
      expect(isPermission(name), String(name)).to.equal(false);
    }
    for (const name of ['Private', 'constructor', '', undefined]) {
      expect(isApplicationType(name), String(name)).to.equal(false);
    }
    expect(APPLICATION_TYPES.every(isApplicationType)).to.equal(true);
  });

  it('know their types and whether rules govern them', () => {
    expect(isAllowedFor('token:read', 'private')).to.equal(true);
    expect(isAllowedFor('token:read', 'public')).to.equal(false);
    expect(isAllowedFor('token:create', 'management')).to.equal(false);
    expect(isTokenPermission('token:use')).to.equal(true);
    expect(isTokenPermission('tenant:read')).to.equal(false);
  });
});
