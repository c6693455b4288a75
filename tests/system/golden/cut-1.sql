-- What version 1 of the schema left: a run that was done, and one that was cut.
BEGIN TRANSACTION;
CREATE TABLE assignment (
	job VARCHAR(128) NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR(128) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job, rank)
);
INSERT INTO "assignment" VALUES('finetune',0,'s0-gpu0','swap-0001');
INSERT INTO "assignment" VALUES('finetune',1,'s3-gpu0','swap-0001');
INSERT INTO "assignment" VALUES('finetune',2,'s2-gpu0','swap-0001');
CREATE TABLE device_states (
	device VARCHAR(128) NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR(8) NOT NULL, 
	PRIMARY KEY (device, puc)
);
INSERT INTO "device_states" VALUES('mesh',0,'=');
INSERT INTO "device_states" VALUES('mesh',1,'x');
INSERT INTO "device_states" VALUES('mesh',2,'=');
CREATE TABLE devices (
	device VARCHAR(128) NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (device)
);
INSERT INTO "devices" VALUES('mesh',1,'swap-0001');
CREATE TABLE journal (
	seq INTEGER NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	step VARCHAR(32) NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	previous VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	PRIMARY KEY (seq)
);
INSERT INTO "journal" VALUES(1,'swap-0001',100.0,'begin','','{"inventory_digest": "1dea", "plan": "0badcafe", "target": "sim", "title": "finetune: replace s1-gpu0 by s3-gpu0", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','6238645b701330d981c2f3f28481f36e9d5da173ec52e3e1f0753274d3df51a6');
INSERT INTO "journal" VALUES(2,'swap-0001',101.0,'intent','1','{"do": "program", "title": "program mesh"}',1,'0.1.0','6238645b701330d981c2f3f28481f36e9d5da173ec52e3e1f0753274d3df51a6','0a458255c6e1951848ed634eadbf6b5ff607daf8cd5262b390c236836ce15ebd');
INSERT INTO "journal" VALUES(3,'swap-0001',102.0,'outcome','1','{"cells": 3, "done": true}',1,'0.1.0','0a458255c6e1951848ed634eadbf6b5ff607daf8cd5262b390c236836ce15ebd','4c3fb4a6b3677a5b23f33ab384ad5c36177403aebf9c7358b4bde8e3f6b3f99c');
INSERT INTO "journal" VALUES(4,'swap-0001',103.0,'end','','{"seconds": 3.0, "state": "done"}',1,'0.1.0','4c3fb4a6b3677a5b23f33ab384ad5c36177403aebf9c7358b4bde8e3f6b3f99c','0db206da556545ea8e5ba3d7d141a368afa02680c2af4c747e6c5ebae60853d7');
INSERT INTO "journal" VALUES(5,'swap-0002',200.0,'begin','','{"inventory_digest": "1dea", "plan": "feed", "target": "sim", "title": "finetune: replace s2-gpu0 by s1-gpu0 – ü", "who": "ops@console from 10.0.0.7"}',2,'0.1.0','0db206da556545ea8e5ba3d7d141a368afa02680c2af4c747e6c5ebae60853d7','e1e477e7aef336b5b164987fcf4350d943ac76f1561b10ab4b13de3182845a19');
INSERT INTO "journal" VALUES(6,'swap-0002',201.0,'intent','1','{"do": "transmit", "title": "darken"}',2,'0.1.0','e1e477e7aef336b5b164987fcf4350d943ac76f1561b10ab4b13de3182845a19','09918e24aa7a7b85aa43885453d511a1a55150c0cd7145271e835776078110d7');
CREATE TABLE leases (
	rack VARCHAR(128) NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('prototype','ops@console',2,230.0);
CREATE TABLE meta (
	"key" VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','1');
CREATE TABLE plans (
	id VARCHAR(64) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "plans" VALUES('plan-0badcafe','0badcafe',90.0,'sim','{"id": "plan-0badcafe", "digest": "0badcafe", "created_at": 90.0, "target": "sim", "title": "finetune: replace s1-gpu0 by s3-gpu0"}');
CREATE TABLE runs (
	id VARCHAR(64) NOT NULL, 
	rack VARCHAR(128) NOT NULL, 
	target VARCHAR(16) NOT NULL, 
	kind VARCHAR(32) NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR(64) NOT NULL, 
	inventory_digest VARCHAR(64) NOT NULL, 
	who VARCHAR(256) NOT NULL, 
	version VARCHAR(32) NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR(16) NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR(64), 
	PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES('swap-0001','prototype','sim','swap','finetune: replace s1-gpu0 by s3-gpu0','{"digest": "0badcafe", "steps": [{"id": "1", "title": "program mesh"}]}','0badcafe','1dea','ops@console from 10.0.0.7','0.1.0',1,'done',100.0,103.0,NULL);
INSERT INTO "runs" VALUES('swap-0002','prototype','sim','swap','finetune: replace s2-gpu0 by s1-gpu0 – ü','{"digest": "feed", "steps": []}','0badcafe','1dea','ops@console from 10.0.0.7','0.1.0',2,'running',200.0,NULL,NULL);
CREATE INDEX ix_journal_run ON journal (run);
COMMIT;
