BEGIN TRANSACTION;
CREATE TABLE acknowledgements (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	until FLOAT, 
	covers TEXT, 
	PRIMARY KEY (rack, component, rule)
);
INSERT INTO "acknowledgements" VALUES('golden','g2-gpu0','','ops@console from 10.0.0.7','the vendor is called',1.79557291803465509413e+09,1.79558011803465509409e+09,NULL);
CREATE TABLE approvals (
	rack VARCHAR NOT NULL, 
	"plan" VARCHAR NOT NULL, 
	policy VARCHAR NOT NULL, 
	made_by VARCHAR NOT NULL, 
	asked_at FLOAT NOT NULL, 
	expires_at FLOAT NOT NULL, 
	by_another INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	answered_at FLOAT, 
	PRIMARY KEY (rack, "plan")
);
CREATE TABLE assignment (
	rack VARCHAR NOT NULL, 
	job VARCHAR NOT NULL, 
	rank INTEGER NOT NULL, 
	accelerator VARCHAR NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, job, rank)
);
INSERT INTO "assignment" VALUES('golden','pair',0,'g1-gpu0','rollback-0003');
INSERT INTO "assignment" VALUES('golden','pair',1,'g2-gpu0','rollback-0003');
CREATE TABLE device_states (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	puc INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device, puc)
);
INSERT INTO "device_states" VALUES('golden','mesh',0,'x');
INSERT INTO "device_states" VALUES('golden','mesh',1,'x');
INSERT INTO "device_states" VALUES('golden','mesh',2,'x');
INSERT INTO "device_states" VALUES('golden','mesh',3,'x');
INSERT INTO "device_states" VALUES('golden','mesh',4,'=');
INSERT INTO "device_states" VALUES('golden','mesh',5,'=');
INSERT INTO "device_states" VALUES('golden','mesh',6,'=');
INSERT INTO "device_states" VALUES('golden','mesh',7,'=');
INSERT INTO "device_states" VALUES('golden','mesh',8,'=');
INSERT INTO "device_states" VALUES('golden','mesh',9,'=');
INSERT INTO "device_states" VALUES('golden','mesh',10,'=');
INSERT INTO "device_states" VALUES('golden','mesh',11,'=');
INSERT INTO "device_states" VALUES('golden','mesh',12,'=');
INSERT INTO "device_states" VALUES('golden','mesh',13,'=');
INSERT INTO "device_states" VALUES('golden','mesh',14,'=');
INSERT INTO "device_states" VALUES('golden','mesh',15,'=');
INSERT INTO "device_states" VALUES('golden','mesh',16,'=');
INSERT INTO "device_states" VALUES('golden','mesh',17,'=');
INSERT INTO "device_states" VALUES('golden','mesh',18,'=');
INSERT INTO "device_states" VALUES('golden','mesh',19,'=');
INSERT INTO "device_states" VALUES('golden','mesh',20,'=');
INSERT INTO "device_states" VALUES('golden','mesh',21,'=');
INSERT INTO "device_states" VALUES('golden','mesh',22,'=');
INSERT INTO "device_states" VALUES('golden','mesh',23,'=');
INSERT INTO "device_states" VALUES('golden','mesh',24,'=');
INSERT INTO "device_states" VALUES('golden','mesh',25,'=');
INSERT INTO "device_states" VALUES('golden','mesh',26,'=');
CREATE TABLE devices (
	rack VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	certain INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	PRIMARY KEY (rack, device)
);
INSERT INTO "devices" VALUES('golden','mesh',1,'swap-0004');
CREATE TABLE event_clears (
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	rule VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (rack, component, rule)
);
CREATE TABLE health_memory (
	rack VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	document TEXT NOT NULL, 
	PRIMARY KEY (rack)
);
CREATE TABLE journal (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	run VARCHAR NOT NULL, 
	at FLOAT NOT NULL, 
	kind VARCHAR NOT NULL, 
	step VARCHAR NOT NULL, 
	data TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	version VARCHAR NOT NULL, 
	previous VARCHAR NOT NULL, 
	hash VARCHAR NOT NULL, 
	PRIMARY KEY (rack, seq)
);
INSERT INTO "journal" VALUES('golden',1,'fabric-0001',1.7955729157778878212e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "fabric", "plan": "ded39abf869226155c2d3bbe809d2e77dca38fa570b6641abea6a252316244f5", "rack": "golden", "target": "sim", "title": "program 1 circuits of golden", "who": "ops@console from 10.0.0.7"}',1,'0.1.0','0000000000000000000000000000000000000000000000000000000000000000','42db96b164e1f344aa2d59e50ae7e49f7f2ee480cac939d5251ac82d9bf32408');
INSERT INTO "journal" VALUES('golden',2,'fabric-0001',1.79557291583494877816e+09,'intent','1','{"do": "check", "title": "find which of 0 circuits are sound"}',1,'0.1.0','42db96b164e1f344aa2d59e50ae7e49f7f2ee480cac939d5251ac82d9bf32408','94479c4f784c858a166a1ee75d4e34a691ffe03aad0c9d13f381633c3964b74f');
INSERT INTO "journal" VALUES('golden',3,'fabric-0001',1.79557291583753132822e+09,'outcome','1','{"done": true, "sound": {}}',1,'0.1.0','94479c4f784c858a166a1ee75d4e34a691ffe03aad0c9d13f381633c3964b74f','3b298a1e9e3064cf91d57fecb5614223d52d80562b2906213338e2f996544d1f');
INSERT INTO "journal" VALUES('golden',4,'fabric-0001',1.7955729158379435539e+09,'intent','2','{"do": "program", "title": "program 27 PUCs of mesh"}',1,'0.1.0','3b298a1e9e3064cf91d57fecb5614223d52d80562b2906213338e2f996544d1f','7b72985508d0270fe1585e6f739835bb4cd57b030a03ed939b278fc1d33aa45a');
INSERT INTO "journal" VALUES('golden',5,'fabric-0001',1.79557291586259531977e+09,'outcome','2','{"answer": "ok 27 cells set", "cells": 27, "done": true, "revert_timer": "none"}',1,'0.1.0','7b72985508d0270fe1585e6f739835bb4cd57b030a03ed939b278fc1d33aa45a','c4be2e2a4afa4b3fbc22246a5adfbb57d18710f5a9b68079adcac0dd594fca9a');
INSERT INTO "journal" VALUES('golden',6,'fabric-0001',1.79557291586270689962e+09,'intent','3','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',1,'0.1.0','c4be2e2a4afa4b3fbc22246a5adfbb57d18710f5a9b68079adcac0dd594fca9a','729bcaca4dec8ac0dfdc57916eb1ef22f1fae48287c703ba8ad3b9fd4612c187');
INSERT INTO "journal" VALUES('golden',7,'fabric-0001',1.79557291590876841541e+09,'outcome','3','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.029, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.029, "transmitter": "g2-gpu0-a"}]}',1,'0.1.0','729bcaca4dec8ac0dfdc57916eb1ef22f1fae48287c703ba8ad3b9fd4612c187','e0548a4b0a99e5673eca267ed4a099ba8da8ec8c2fd6a082bdcdee8a9eb226e1');
INSERT INTO "journal" VALUES('golden',8,'fabric-0001',1.79557291590880870818e+09,'intent','4','{"do": "assign", "title": "write down where pair runs"}',1,'0.1.0','e0548a4b0a99e5673eca267ed4a099ba8da8ec8c2fd6a082bdcdee8a9eb226e1','6e74e08210ab20fcd7cfd1bd55228d90d49d86b968a4569f9f460e842ad74e3c');
INSERT INTO "journal" VALUES('golden',9,'fabric-0001',1.79557291591003680229e+09,'outcome','4','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',1,'0.1.0','6e74e08210ab20fcd7cfd1bd55228d90d49d86b968a4569f9f460e842ad74e3c','986405622a9e34250e3bd8227512340201bc2b933583bd780f25db51e5b22c6e');
INSERT INTO "journal" VALUES('golden',10,'fabric-0001',1.7955729159100937844e+09,'end','','{"seconds": 0.0752, "state": "done"}',1,'0.1.0','986405622a9e34250e3bd8227512340201bc2b933583bd780f25db51e5b22c6e','f827aa6ca84651ff14c73733092c7647ab75b51367f86147974f0ba8575b66cb');
INSERT INTO "journal" VALUES('golden',11,'swap-0002',1.79557291615577840808e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "5134b58d4ca90117fcac02dab5d72d51d8f94e629c4b20274f584fdc97337e1d", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',2,'0.1.0','f827aa6ca84651ff14c73733092c7647ab75b51367f86147974f0ba8575b66cb','162b4733369545992e98befc149aaf7886b684a64238a963dc676a9d9eebe51f');
INSERT INTO "journal" VALUES('golden',12,'swap-0002',1.79557291617122912405e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',2,'0.1.0','162b4733369545992e98befc149aaf7886b684a64238a963dc676a9d9eebe51f','ddfa182eb4cdcf79363c5d2141d4cf74e877e712581000aaf1b700e426714907');
INSERT INTO "journal" VALUES('golden',13,'swap-0002',1.79557291622366452222e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',2,'0.1.0','ddfa182eb4cdcf79363c5d2141d4cf74e877e712581000aaf1b700e426714907','d3db1ff65c4fb4111d749d2b9451f3d57ba65403e3040283e33404fa3b15cca4');
INSERT INTO "journal" VALUES('golden',14,'swap-0002',1.79557291622375416752e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',2,'0.1.0','d3db1ff65c4fb4111d749d2b9451f3d57ba65403e3040283e33404fa3b15cca4','dea9c74733101c5bbe2f9665c3556564e44adb55ae69a4105f8e1ae255ef6b3c');
INSERT INTO "journal" VALUES('golden',15,'swap-0002',1.79557291622375607485e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',2,'0.1.0','dea9c74733101c5bbe2f9665c3556564e44adb55ae69a4105f8e1ae255ef6b3c','a9a4d65d53d5922f174eef358c72ad29841f1875cf962a1af10d84118e96b574');
INSERT INTO "journal" VALUES('golden',16,'swap-0002',1.7955729162266097069e+09,'outcome','2','{"done": true, "is": false, "was": true}',2,'0.1.0','a9a4d65d53d5922f174eef358c72ad29841f1875cf962a1af10d84118e96b574','a45004e30dfb6440f0d4eebadeab50dca97ccf96e612ec3ef4373ec8d816e2ec');
INSERT INTO "journal" VALUES('golden',17,'swap-0002',1.79557291622661614411e+09,'outcome','3','{"done": true, "is": true, "was": true}',2,'0.1.0','a45004e30dfb6440f0d4eebadeab50dca97ccf96e612ec3ef4373ec8d816e2ec','03a675f191ec47034b265c4cd0f42a013bc144f0f2734a498da6d7c2fed36b4e');
INSERT INTO "journal" VALUES('golden',18,'swap-0002',1.79557291622706413267e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',2,'0.1.0','03a675f191ec47034b265c4cd0f42a013bc144f0f2734a498da6d7c2fed36b4e','4a8c829e55308a0dff813bd971b2e853819152ea483ca7abefabd0e6d81edcbf');
INSERT INTO "journal" VALUES('golden',19,'swap-0002',1.79557291623040151599e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',2,'0.1.0','4a8c829e55308a0dff813bd971b2e853819152ea483ca7abefabd0e6d81edcbf','358462129dd9118b0b6b5153b16e6b379983da52e406a3566de723a396180b93');
INSERT INTO "journal" VALUES('golden',20,'swap-0002',1.79557291623048686981e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',2,'0.1.0','358462129dd9118b0b6b5153b16e6b379983da52e406a3566de723a396180b93','97a764b55389bc3daf8ca68fae6cbb0a2723765bcdfffd679922c154cdf29420');
INSERT INTO "journal" VALUES('golden',21,'swap-0002',1.79557291623416566848e+09,'outcome','5','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g3-gpu0-a", "seconds": 0.002, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.002, "transmitter": "g3-gpu0-a"}]}',2,'0.1.0','97a764b55389bc3daf8ca68fae6cbb0a2723765bcdfffd679922c154cdf29420','2a8915a0d267e9cac3dd1164d06404cfbed36990637646d3ec447db339bf4095');
INSERT INTO "journal" VALUES('golden',22,'swap-0002',1.79557291623419833185e+09,'intent','6','{"do": "assign", "title": "write down where pair runs"}',2,'0.1.0','2a8915a0d267e9cac3dd1164d06404cfbed36990637646d3ec447db339bf4095','8f0f09c583dcca6a85a92796cacdb6ceacf3ee13022ec4999b6d409113a5e853');
INSERT INTO "journal" VALUES('golden',23,'swap-0002',1.7955729162348973751e+09,'outcome','6','{"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "done": true}',2,'0.1.0','8f0f09c583dcca6a85a92796cacdb6ceacf3ee13022ec4999b6d409113a5e853','7a9785e1feb13c9c1b0f90a32817b7312523daceb2b7fb6f5b1d570bbbbb7a6d');
INSERT INTO "journal" VALUES('golden',24,'swap-0002',1.79557291623495197301e+09,'end','','{"seconds": 0.0638, "state": "done"}',2,'0.1.0','7a9785e1feb13c9c1b0f90a32817b7312523daceb2b7fb6f5b1d570bbbbb7a6d','bfc7f0df99ddf1c08f3404f43f1c106f20ff961f30f59666992a178038d3cd0c');
INSERT INTO "journal" VALUES('golden',25,'rollback-0003',1.79557291635459208485e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "rollback", "plan": "a9cae147aa7db0821214feb76e78cc582874e98ff419989a8b5487ffd0540b33", "rack": "golden", "target": "sim", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "who": "ops@console from 10.0.0.7"}',3,'0.1.0','bfc7f0df99ddf1c08f3404f43f1c106f20ff961f30f59666992a178038d3cd0c','d47c36f4e386873017d6efed1432750d53ba47937451bff29e70eb5703f75aae');
INSERT INTO "journal" VALUES('golden',26,'rollback-0003',1.79557291638325667378e+09,'intent','1','{"do": "check", "title": "find which of 1 circuit are sound"}',3,'0.1.0','d47c36f4e386873017d6efed1432750d53ba47937451bff29e70eb5703f75aae','0cb5c141d35d3cfd6e05e078f4a48c06032b4102cbdbc4d41ec0666cb890772a');
INSERT INTO "journal" VALUES('golden',27,'rollback-0003',1.79557291639463639256e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g3-gpu0-a", "g3-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": false}}',3,'0.1.0','0cb5c141d35d3cfd6e05e078f4a48c06032b4102cbdbc4d41ec0666cb890772a','132cf19d14f730e023ae644cc9fd99a7ea861eb12e6fc76ed33d60be22c3c06d');
INSERT INTO "journal" VALUES('golden',28,'rollback-0003',1.79557291639472389223e+09,'intent','2','{"do": "transmit", "title": "light the transmitter of g2-gpu0-a"}',3,'0.1.0','132cf19d14f730e023ae644cc9fd99a7ea861eb12e6fc76ed33d60be22c3c06d','4a20783b92c0825a37b3dfce369ca8436a2d6ae084636f61231cb79aa84fedc1');
INSERT INTO "journal" VALUES('golden',29,'rollback-0003',1795572916.39764,'outcome','2','{"done": true, "is": true, "was": false}',3,'0.1.0','4a20783b92c0825a37b3dfce369ca8436a2d6ae084636f61231cb79aa84fedc1','8848664ea813a2c4038b2f2d64cfe663ea063cd3655c69b512a51cb715e85910');
INSERT INTO "journal" VALUES('golden',30,'rollback-0003',1.79557291639845085142e+09,'intent','3','{"do": "program", "title": "program 5 PUCs of mesh"}',3,'0.1.0','8848664ea813a2c4038b2f2d64cfe663ea063cd3655c69b512a51cb715e85910','e543b2f98c1a4b3c644141f34cf98d37a917c48bb3cfc5d6b54b50a2eb11440a');
INSERT INTO "journal" VALUES('golden',31,'rollback-0003',1.79557291640542650225e+09,'outcome','3','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',3,'0.1.0','e543b2f98c1a4b3c644141f34cf98d37a917c48bb3cfc5d6b54b50a2eb11440a','2792d525fc48b2fe1fb058b457810c9e3e163fe437e67882984508d6363a66e4');
INSERT INTO "journal" VALUES('golden',32,'rollback-0003',1.79557291640559315683e+09,'intent','4','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',3,'0.1.0','2792d525fc48b2fe1fb058b457810c9e3e163fe437e67882984508d6363a66e4','e5b9bcaf4d0613f9e740294f9e09f5cd46f00c3206d85510a278fb44b18b62c3');
INSERT INTO "journal" VALUES('golden',33,'rollback-0003',1.79557291642837691305e+09,'outcome','4','{"done": true, "kept": 0, "proofs": [{"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g2-gpu0-a", "seconds": 0.009, "transmitter": "g1-gpu0-a"}, {"circuit": "pair/0-1", "evidence": "lldp", "receiver": "g1-gpu0-a", "seconds": 0.009, "transmitter": "g2-gpu0-a"}]}',3,'0.1.0','e5b9bcaf4d0613f9e740294f9e09f5cd46f00c3206d85510a278fb44b18b62c3','6b6b0fd744da6efa10cf789452cc24b400abb80b74c4366c2d060b654eae18e8');
INSERT INTO "journal" VALUES('golden',34,'rollback-0003',1.79557291642846488955e+09,'intent','5','{"do": "assign", "title": "write down where pair runs"}',3,'0.1.0','6b6b0fd744da6efa10cf789452cc24b400abb80b74c4366c2d060b654eae18e8','63ab5882e6451e933bedf8ad275cc995215505f8616517563c3f38975737cf02');
INSERT INTO "journal" VALUES('golden',35,'rollback-0003',1.79557291643727374077e+09,'outcome','5','{"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "done": true}',3,'0.1.0','63ab5882e6451e933bedf8ad275cc995215505f8616517563c3f38975737cf02','80ef5975264904aaa443aeef3196301c0af3c5b07fc83c82b3c240d282449620');
INSERT INTO "journal" VALUES('golden',36,'rollback-0003',1.79557291643735527988e+09,'end','','{"seconds": 0.0542, "state": "done", "undid": "swap-0002"}',3,'0.1.0','80ef5975264904aaa443aeef3196301c0af3c5b07fc83c82b3c240d282449620','8f06408e2b6dba5d7481ce276f69aa913855319befa4c4478b79cf5898133fea');
INSERT INTO "journal" VALUES('golden',37,'swap-0004',1.79557291653820133214e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "swap", "plan": "dae1e6592bf8647e1a49a52cd9114e05b59bcc6196dc197038cd6ec8085b3a34", "rack": "golden", "target": "sim", "title": "pair: replace g2-gpu0 by g3-gpu0", "who": "ops@console from 10.0.0.7"}',4,'0.1.0','8f06408e2b6dba5d7481ce276f69aa913855319befa4c4478b79cf5898133fea','f886907f0dd91d6b0def53e740378f70a222a9bc731b05a0efecc481f3e8878f');
INSERT INTO "journal" VALUES('golden',38,'swap-0004',1.79557291654712867729e+09,'intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','f886907f0dd91d6b0def53e740378f70a222a9bc731b05a0efecc481f3e8878f','614ef3e69b6a49b03884af5c73c935e0c9cc47e761caa18e87e877ec6a9cb009');
INSERT INTO "journal" VALUES('golden',39,'swap-0004',1.7955729165637187958e+09,'outcome','1','{"done": true, "sound": {"g1-gpu0-a": "g2-gpu0-a", "g2-gpu0-a": "g1-gpu0-a"}, "transmitting": {"g2-gpu0-a": true, "g3-gpu0-a": true}}',4,'0.1.0','614ef3e69b6a49b03884af5c73c935e0c9cc47e761caa18e87e877ec6a9cb009','8f2ee2052aa5adb247624775d58df852c99379eca223932d2081c9efb2f001cd');
INSERT INTO "journal" VALUES('golden',40,'swap-0004',1.79557291656377410885e+09,'intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','8f2ee2052aa5adb247624775d58df852c99379eca223932d2081c9efb2f001cd','b0ea777ae7a706c76a3531a27113c976a241e30e483c2b953e30550366d2edb6');
INSERT INTO "journal" VALUES('golden',41,'swap-0004',1.79557291656377601618e+09,'intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','b0ea777ae7a706c76a3531a27113c976a241e30e483c2b953e30550366d2edb6','fdf4c072452da204f3b471f47981337ec77bd1964ff43a3b143042d923003baa');
INSERT INTO "journal" VALUES('golden',42,'swap-0004',1.79557291657688784594e+09,'outcome','2','{"done": true, "is": false, "was": true}',4,'0.1.0','fdf4c072452da204f3b471f47981337ec77bd1964ff43a3b143042d923003baa','5055a497af743e55c1e5fca2bbe3dade609759a6275ec9c2c797b74da07dcfc3');
INSERT INTO "journal" VALUES('golden',43,'swap-0004',1.79557291657689929004e+09,'outcome','3','{"done": true, "is": true, "was": true}',4,'0.1.0','5055a497af743e55c1e5fca2bbe3dade609759a6275ec9c2c797b74da07dcfc3','fbcbfe6004b8fab8be56bbe7b777f3520073e7675275ebd6562520aaf3f336ba');
INSERT INTO "journal" VALUES('golden',44,'swap-0004',1.79557291657760620113e+09,'intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','fbcbfe6004b8fab8be56bbe7b777f3520073e7675275ebd6562520aaf3f336ba','655e6065aacea8e731c93b51d260bc6234d6b97a2232c3ab44de93da824e2dcc');
INSERT INTO "journal" VALUES('golden',45,'swap-0004',1.79557291658173322681e+09,'outcome','4','{"answer": "ok 5 cells set", "cells": 5, "done": true, "revert_timer": "ours"}',4,'0.1.0','655e6065aacea8e731c93b51d260bc6234d6b97a2232c3ab44de93da824e2dcc','ea3d194e85644ffd58deba7dcfca9a86f33fc16ad4f72766ef3ad3717621f889');
INSERT INTO "journal" VALUES('golden',46,'swap-0004',1.79557291658182263376e+09,'intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','ea3d194e85644ffd58deba7dcfca9a86f33fc16ad4f72766ef3ad3717621f889','609f695d895552d8d1a2095774ebc0400093c05063c66cf79f1fbfd9ad87e8c8');
INSERT INTO "journal" VALUES('golden',47,'swap-0004',1795572917.61823,'outcome','5','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a"}',4,'0.1.0','609f695d895552d8d1a2095774ebc0400093c05063c66cf79f1fbfd9ad87e8c8','a1b20dfd8fce2a3b36dbf427ad6d8830ade3d0210c8943ce25e67f37a6c4a304');
INSERT INTO "journal" VALUES('golden',48,'swap-0004',1.79557291762786865236e+09,'undo-intent','5','{"do": "verify", "title": "verify 1 new circuit and 0 others on the same devices"}',4,'0.1.0','a1b20dfd8fce2a3b36dbf427ad6d8830ade3d0210c8943ce25e67f37a6c4a304','2599117bb3eba15afd59c27897ed99628edb351f2155264f25b12b83291b242d');
INSERT INTO "journal" VALUES('golden',49,'swap-0004',1.79557291764215707784e+09,'undo-outcome','5','{"undone": true}',4,'0.1.0','2599117bb3eba15afd59c27897ed99628edb351f2155264f25b12b83291b242d','bc2cd569b3f30ef461f99cc0cbd1e2174e61a564ed00df1bb3d4ceca5c4cc449');
INSERT INTO "journal" VALUES('golden',50,'swap-0004',1.79557291768607711797e+09,'undo-intent','4','{"do": "program", "title": "program 5 PUCs of mesh"}',4,'0.1.0','bc2cd569b3f30ef461f99cc0cbd1e2174e61a564ed00df1bb3d4ceca5c4cc449','c498ea86bd71d9903236dc714ac54e999f8f2ee6b1f0d8be03f778318b52e794');
INSERT INTO "journal" VALUES('golden',51,'swap-0004',1.7955729177014753818e+09,'undo-outcome','4','{"cells": 5, "undone": true}',4,'0.1.0','c498ea86bd71d9903236dc714ac54e999f8f2ee6b1f0d8be03f778318b52e794','2ce7a85ddb4986ea5ad1a2fe9810b186cb32ccd557b289255b3b0781da26382e');
INSERT INTO "journal" VALUES('golden',52,'swap-0004',1.79557291771867895131e+09,'undo-intent','3','{"do": "transmit", "title": "light the transmitter of g3-gpu0-a"}',4,'0.1.0','2ce7a85ddb4986ea5ad1a2fe9810b186cb32ccd557b289255b3b0781da26382e','5997333c1949f142881412079bddfc32a2f345847e22f67e1403ca1b4ffc53fd');
INSERT INTO "journal" VALUES('golden',53,'swap-0004',1.79557291774233603477e+09,'undo-outcome','3','{"is": true, "undone": true}',4,'0.1.0','5997333c1949f142881412079bddfc32a2f345847e22f67e1403ca1b4ffc53fd','d67cdf95457927bd9d360c10e19428a782d402ba4a51aeeba1f1754d593ef59e');
INSERT INTO "journal" VALUES('golden',54,'swap-0004',1.79557291774877142908e+09,'undo-intent','2','{"do": "transmit", "title": "darken the transmitter of g2-gpu0-a"}',4,'0.1.0','d67cdf95457927bd9d360c10e19428a782d402ba4a51aeeba1f1754d593ef59e','24d747020a9c3fbde25bb2bd8f43cb299c9758b13a1bdb48f236f855d1429d3a');
INSERT INTO "journal" VALUES('golden',55,'swap-0004',1.79557291776745319364e+09,'undo-outcome','2','{"is": true, "undone": true}',4,'0.1.0','24d747020a9c3fbde25bb2bd8f43cb299c9758b13a1bdb48f236f855d1429d3a','d6e92b8a45fed1fd5f0fc745ad5c7912b1eb4146339ad004e011d426d9d30ae2');
INSERT INTO "journal" VALUES('golden',56,'swap-0004',1.79557291778504586219e+09,'undo-intent','1','{"do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound"}',4,'0.1.0','d6e92b8a45fed1fd5f0fc745ad5c7912b1eb4146339ad004e011d426d9d30ae2','897ecc832f28d83c5aaa350e30f69f2e8f5f576c1cea001e7a633bae17401f4f');
INSERT INTO "journal" VALUES('golden',57,'swap-0004',1.79557291779459261889e+09,'undo-outcome','1','{"undone": true}',4,'0.1.0','897ecc832f28d83c5aaa350e30f69f2e8f5f576c1cea001e7a633bae17401f4f','83f4963b4c58191eef887041eca051b78cb76805fbaa4dcc7510370099164f61');
INSERT INTO "journal" VALUES('golden',58,'swap-0004',1.79557291781416058541e+09,'end','','{"failed": "light was not verified within 1.0 s: g1-gpu0-a hears nobody instead of g3-gpu0-a", "state": "rolled-back"}',4,'0.1.0','83f4963b4c58191eef887041eca051b78cb76805fbaa4dcc7510370099164f61','077dc7e9e4de08e5efbb2f4d869ec479de0f9d01d15433aa888ed7d863994d23');
INSERT INTO "journal" VALUES('golden',59,'set-0005',1.79557291793039107323e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "set", "plan": "af4194c13b5ea652cab0d06008ef7e16f7d688186661e5ffea5e6daeb28de40d", "rack": "golden", "target": "sim", "title": "set g3-gpu0-a transmit=off", "who": "ops@console from 10.0.0.7"}',5,'0.1.0','077dc7e9e4de08e5efbb2f4d869ec479de0f9d01d15433aa888ed7d863994d23','9904974f0bbce748e61618de76ac30367a5f2ac8f8a9eeeae4f47e382e08841e');
INSERT INTO "journal" VALUES('golden',60,'set-0005',1.79557291795509099954e+09,'intent','1','{"do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)"}',5,'0.1.0','9904974f0bbce748e61618de76ac30367a5f2ac8f8a9eeeae4f47e382e08841e','298ee66d8c557e4ab0ac11ee54a59864a9b98ac51a5fc349742afdde7966e326');
INSERT INTO "journal" VALUES('golden',61,'set-0005',1.79557291799543476112e+09,'outcome','1','{"done": true, "is": false, "was": true}',5,'0.1.0','298ee66d8c557e4ab0ac11ee54a59864a9b98ac51a5fc349742afdde7966e326','cd7ef13759edcee92ac0f5fd6b66b3b29e4dae1abd8f28e2eacf7a184a498f7a');
INSERT INTO "journal" VALUES('golden',62,'set-0005',1.79557291799552559848e+09,'end','','{"seconds": 0.0405, "state": "done"}',5,'0.1.0','cd7ef13759edcee92ac0f5fd6b66b3b29e4dae1abd8f28e2eacf7a184a498f7a','fb28c5cc8f4cc71e42fc933cb0e209f057a937958a4cc62ae7004ae8aba10c4f');
INSERT INTO "journal" VALUES('golden',63,'ack-0006',1.79557291803465509413e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "ack", "plan": "c1bcbf9869c85035e266b01c6dc306f9f7fc9be9349d525532ba4162dabdbf76", "rack": "golden", "target": "sim", "title": "acknowledge g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','fb28c5cc8f4cc71e42fc933cb0e209f057a937958a4cc62ae7004ae8aba10c4f','040e820c27ddbfcf27740d3ab54c12b2612f11137dac92006ebe0a95f76375c2');
INSERT INTO "journal" VALUES('golden',64,'ack-0006',1.79557291803465509413e+09,'intent','1','{"do": "record", "title": "acknowledge g2-gpu0"}',0,'0.1.0','040e820c27ddbfcf27740d3ab54c12b2612f11137dac92006ebe0a95f76375c2','d9e709888e0a7e88d09cd67c9a91b642cc9a5945d0d135cd35ccf677d3da5925');
INSERT INTO "journal" VALUES('golden',65,'ack-0006',1.79557291803465509413e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "rule": null, "was": []}',0,'0.1.0','d9e709888e0a7e88d09cd67c9a91b642cc9a5945d0d135cd35ccf677d3da5925','a0a034f8eedf1b9894e2c2bebfcf6e01e51dbafdb4cc35b73bf9b071b9ecad06');
INSERT INTO "journal" VALUES('golden',66,'ack-0006',1.79557291803465509413e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','a0a034f8eedf1b9894e2c2bebfcf6e01e51dbafdb4cc35b73bf9b071b9ecad06','3087702cd049e9fa4f75cf6a29dac9faf11fe30a4f75887a892305214a4b0b91');
INSERT INTO "journal" VALUES('golden',67,'maintain-0007',1.79557291806630444524e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "5a998a77cc9dd3d911330849f90ea9c9c3d0d41a7ee0fc5264764b6d2b468ef5", "rack": "golden", "target": "sim", "title": "open-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','3087702cd049e9fa4f75cf6a29dac9faf11fe30a4f75887a892305214a4b0b91','28873f27e67d80ca067ba81b9858ee9dadef72269d59c3ed29aff33de5df969d');
INSERT INTO "journal" VALUES('golden',68,'maintain-0007',1.79557291806630444524e+09,'intent','1','{"do": "record", "title": "open-window g2-gpu0"}',0,'0.1.0','28873f27e67d80ca067ba81b9858ee9dadef72269d59c3ed29aff33de5df969d','2d03b185a81014c5e0a7fc14c58d316e9130c453b5c27f8f051ed87f00fd9b5f');
INSERT INTO "journal" VALUES('golden',69,'maintain-0007',1.79557291806630444524e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "window": "maintenance-b51e7bf5"}',0,'0.1.0','2d03b185a81014c5e0a7fc14c58d316e9130c453b5c27f8f051ed87f00fd9b5f','6e1f88f15b4c099bfb3b5dc530181465fb6ee402ac33886368fa0285e2489417');
INSERT INTO "journal" VALUES('golden',70,'maintain-0007',1.79557291806630444524e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','6e1f88f15b4c099bfb3b5dc530181465fb6ee402ac33886368fa0285e2489417','14c77383c76facda92c420b5ab0a16472582b93921a55b1433c225817e4f587b');
INSERT INTO "journal" VALUES('golden',71,'maintain-0008',1.795572918350297451e+09,'begin','','{"inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "kind": "maintain", "plan": "4c4a6cb4a911ab3d57e0882708fe48afccf666d05850cff8773701db0631f863", "rack": "golden", "target": "sim", "title": "end-window g2-gpu0", "who": "ops@console from 10.0.0.7"}',0,'0.1.0','14c77383c76facda92c420b5ab0a16472582b93921a55b1433c225817e4f587b','18f9c109717d39fec687531257c4e3e708409c13bdc1928b95d8e3f24de91b7f');
INSERT INTO "journal" VALUES('golden',72,'maintain-0008',1.795572918350297451e+09,'intent','1','{"do": "record", "title": "end-window g2-gpu0"}',0,'0.1.0','18f9c109717d39fec687531257c4e3e708409c13bdc1928b95d8e3f24de91b7f','c73049f531f17fb869638702550c305b7ab000f0613877f66f25658627b0af8d');
INSERT INTO "journal" VALUES('golden',73,'maintain-0008',1.795572918350297451e+09,'outcome','1','{"component": "g2-gpu0", "done": true, "ended": 1, "was": {"maintenance-b51e7bf5": 1795576518.0663044}}',0,'0.1.0','c73049f531f17fb869638702550c305b7ab000f0613877f66f25658627b0af8d','10b1602fb796c02932ededfd7280d9c0d8c9ef4870c7708c8a00a5f8545363ac');
INSERT INTO "journal" VALUES('golden',74,'maintain-0008',1.795572918350297451e+09,'end','','{"seconds": 0.0, "state": "done"}',0,'0.1.0','10b1602fb796c02932ededfd7280d9c0d8c9ef4870c7708c8a00a5f8545363ac','6d8e32f264ce1a27fb849918870b3789dd32b19a8d218458017133411de73295');
CREATE TABLE leases (
	rack VARCHAR NOT NULL, 
	holder TEXT NOT NULL, 
	fence INTEGER NOT NULL, 
	expires_at FLOAT NOT NULL, 
	process TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (rack)
);
INSERT INTO "leases" VALUES('golden','ops@console from 10.0.0.7',5,0.0,'{"process": {"host": "vm", "boot_id": "c0cc1cee-9dbd-4b71-9db9-2ee687c4aff0:4026531836", "pid": 10218, "started": 214877}, "ends_at": 2184.786608269}');
CREATE TABLE maintenance_windows (
	id VARCHAR NOT NULL, 
	rack VARCHAR NOT NULL, 
	component VARCHAR NOT NULL, 
	"by" VARCHAR NOT NULL, 
	comment TEXT NOT NULL, 
	starts FLOAT NOT NULL, 
	ends FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "maintenance_windows" VALUES('maintenance-b51e7bf5','golden','g2-gpu0','ops@console from 10.0.0.7','a new card',1.79557291806630444524e+09,1.795572918350297451e+09);
CREATE TABLE meta (
	"key" VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('schema_version','6');
CREATE TABLE plans (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	digest VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	target VARCHAR NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (rack, id)
);
CREATE TABLE readings (
	rack VARCHAR NOT NULL, 
	hour INTEGER NOT NULL, 
	component VARCHAR NOT NULL, 
	body BLOB NOT NULL, 
	PRIMARY KEY (rack, hour, component)
);
CREATE TABLE runs (
	rack VARCHAR NOT NULL, 
	id VARCHAR NOT NULL, 
	target VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	title TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	plan_digest VARCHAR NOT NULL, 
	inventory_digest VARCHAR NOT NULL, 
	who VARCHAR NOT NULL, 
	version VARCHAR NOT NULL, 
	fence INTEGER NOT NULL, 
	state VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT, 
	undone_by VARCHAR, 
	PRIMARY KEY (rack, id)
);
INSERT INTO "runs" VALUES('golden','fabric-0001','sim','fabric','program 1 circuits of golden','{"schema": "lumctl/plan/v1", "id": "plan-ded39abf", "digest": "ded39abf869226155c2d3bbe809d2e77dca38fa570b6641abea6a252316244f5", "kind": "fabric", "title": "program 1 circuits of golden", "rack": "golden", "target": "sim", "created_at": 1795572915.5913525, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.801, "warnings": ["mesh is written whole: all it carries goes dark meanwhile"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 0, "from": null, "to": "x"}, {"device": "mesh", "puc": 1, "from": null, "to": "x"}, {"device": "mesh", "puc": 2, "from": null, "to": "x"}, {"device": "mesh", "puc": 3, "from": null, "to": "x"}, {"device": "mesh", "puc": 4, "from": null, "to": "="}, {"device": "mesh", "puc": 5, "from": null, "to": "="}, {"device": "mesh", "puc": 6, "from": null, "to": "="}, {"device": "mesh", "puc": 7, "from": null, "to": "="}, {"device": "mesh", "puc": 8, "from": null, "to": "="}, {"device": "mesh", "puc": 9, "from": null, "to": "="}, {"device": "mesh", "puc": 10, "from": null, "to": "="}, {"device": "mesh", "puc": 11, "from": null, "to": "="}, {"device": "mesh", "puc": 12, "from": null, "to": "="}, {"device": "mesh", "puc": 13, "from": null, "to": "="}, {"device": "mesh", "puc": 14, "from": null, "to": "="}, {"device": "mesh", "puc": 15, "from": null, "to": "="}, {"device": "mesh", "puc": 16, "from": null, "to": "="}, {"device": "mesh", "puc": 17, "from": null, "to": "="}, {"device": "mesh", "puc": 18, "from": null, "to": "="}, {"device": "mesh", "puc": 19, "from": null, "to": "="}, {"device": "mesh", "puc": 20, "from": null, "to": "="}, {"device": "mesh", "puc": 21, "from": null, "to": "="}, {"device": "mesh", "puc": 22, "from": null, "to": "="}, {"device": "mesh", "puc": 23, "from": null, "to": "="}, {"device": "mesh", "puc": 24, "from": null, "to": "="}, {"device": "mesh", "puc": 25, "from": null, "to": "="}, {"device": "mesh", "puc": 26, "from": null, "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 0 circuits are sound", "data": {"healthy": [], "kept": [], "replaced": []}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "program", "title": "program 27 PUCs of mesh", "data": {"device": "mesh", "changes": [[0, null, "x"], [1, null, "x"], [2, null, "x"], [3, null, "x"], [4, null, "="], [5, null, "="], [6, null, "="], [7, null, "="], [8, null, "="], [9, null, "="], [10, null, "="], [11, null, "="], [12, null, "="], [13, null, "="], [14, null, "="], [15, null, "="], [16, null, "="], [17, null, "="], [18, null, "="], [19, null, "="], [20, null, "="], [21, null, "="], [22, null, "="], [23, null, "="], [24, null, "="], [25, null, "="], [26, null, "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 27 states from before", "required": true, "expected_seconds": 0.101, "stage": 1}, {"id": "3", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "4", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','ded39abf869226155c2d3bbe809d2e77dca38fa570b6641abea6a252316244f5','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',1,'done',1.7955729157778878212e+09,1.7955729159100937844e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0002','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-5134b58d", "digest": "5134b58d4ca90117fcac02dab5d72d51d8f94e629c4b20274f584fdc97337e1d", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795572915.971003, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"]}','5134b58d4ca90117fcac02dab5d72d51d8f94e629c4b20274f584fdc97337e1d','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',2,'undone',1.79557291615577840808e+09,1.79557291623495197301e+09,'rollback-0003');
INSERT INTO "runs" VALUES('golden','rollback-0003','sim','rollback','take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)','{"schema": "lumctl/plan/v1", "id": "plan-a9cae147", "digest": "a9cae147aa7db0821214feb76e78cc582874e98ff419989a8b5487ffd0540b33", "kind": "rollback", "title": "take back swap-0002 (pair: replace g2-gpu0 by g3-gpu0)", "rack": "golden", "target": "sim", "created_at": 1795572916.2891428, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": "swap-0002", "expected_seconds": 0.901, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [], "candidates": [], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "=", "to": "x"}, {"device": "mesh", "puc": 8, "from": "x", "to": "="}, {"device": "mesh", "puc": 14, "from": "x", "to": "="}, {"device": "mesh", "puc": 19, "from": "x", "to": "="}, {"device": "mesh", "puc": 20, "from": "x", "to": "="}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "find which of 1 circuit are sound", "data": {"healthy": [], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.2}, {"id": "2", "do": "transmit", "title": "light the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "=", "x"], [8, "x", "="], [14, "x", "="], [19, "x", "="], [20, "x", "="]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.101, "stage": 2}, {"id": "4", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.5}, {"id": "5", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "before": {"pair": ["g1-gpu0", "g3-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 8, 14, 19, 20]}}}','a9cae147aa7db0821214feb76e78cc582874e98ff419989a8b5487ffd0540b33','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',3,'done',1.79557291635459208485e+09,1.79557291643735527988e+09,NULL);
INSERT INTO "runs" VALUES('golden','swap-0004','sim','swap','pair: replace g2-gpu0 by g3-gpu0','{"schema": "lumctl/plan/v1", "id": "plan-dae1e659", "digest": "dae1e6592bf8647e1a49a52cd9114e05b59bcc6196dc197038cd6ec8085b3a34", "kind": "swap", "title": "pair: replace g2-gpu0 by g3-gpu0", "rack": "golden", "target": "sim", "created_at": 1795572916.4653738, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.142, "warnings": ["job pair has no hook: pause or stop it before you apply this, and resume it afterwards"], "replacements": [{"job": "pair", "rank": 1, "failed": "g2-gpu0", "spare": "g3-gpu0"}], "candidates": [{"failed": "g2-gpu0", "spare": "g3-gpu0", "chosen": true, "reasons": ["the best there is", "10 PUCs in new circuits, 5 cells to write, worst loss 4.50 dB"], "rank": 1, "score": {"reserved": 1, "memory_gib": 0.0, "lanes": 0, "tied": 0, "faults": 0, "fresh": 0, "moves": 0, "thin": 0, "loss_db": 4.5, "pucs": 10, "cells": 5, "order": 2}}], "circuits": {"add": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g3-gpu0-a", "port": 10}], "pucs": [0, 1, 2, 3, 8, 14, 19, 25, 26, 20], "loss_db": 4.5, "expected_rx_dbm": -2.5, "margin_db": 13.3}], "remove": [{"id": "pair/0-1", "owner": "pair", "device": "mesh", "direction": "duplex", "ends": [{"lane": "g1-gpu0-a", "port": 0}, {"lane": "g2-gpu0-a", "port": 5}], "pucs": [0, 1, 2, 3, 4], "loss_db": 3.25, "expected_rx_dbm": -1.25, "margin_db": 14.55}], "keep": []}, "puc_changes": [{"device": "mesh", "puc": 3, "from": "x", "to": "="}, {"device": "mesh", "puc": 8, "from": "=", "to": "x"}, {"device": "mesh", "puc": 14, "from": "=", "to": "x"}, {"device": "mesh", "puc": 19, "from": "=", "to": "x"}, {"device": "mesh", "puc": 20, "from": "=", "to": "x"}], "join_changes": [], "steps": [{"id": "1", "do": "check", "title": "check that g3-gpu0 is healthy, and find which of 1 circuit are sound", "data": {"healthy": ["g3-gpu0"], "kept": [], "replaced": ["pair/0-1"]}, "precondition": "a fresh reading says ok", "verification": "", "undo": "nothing was done", "required": true, "expected_seconds": 0.0114}, {"id": "2", "do": "transmit", "title": "darken the transmitter of g2-gpu0-a", "data": {"transponder": "g2-gpu0-a", "enabled": false}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": false, "expected_seconds": 0.1, "stage": 1}, {"id": "3", "do": "transmit", "title": "light the transmitter of g3-gpu0-a", "data": {"transponder": "g3-gpu0-a", "enabled": true}, "precondition": "", "verification": "the host''s own flag is read back", "undo": "as it was before", "required": true, "expected_seconds": 0.1, "stage": 1}, {"id": "4", "do": "program", "title": "program 5 PUCs of mesh", "data": {"device": "mesh", "changes": [[3, "x", "="], [8, "=", "x"], [14, "=", "x"], [19, "=", "x"], [20, "=", "x"]]}, "precondition": "mesh holds what it did when this plan was made", "verification": "by the light that arrives", "undo": "write the 5 states from before", "required": true, "expected_seconds": 0.007, "stage": 2}, {"id": "5", "do": "verify", "title": "verify 1 new circuit and 0 others on the same devices", "data": {"circuits": ["pair/0-1"], "kept": []}, "precondition": "", "verification": "each receiver hears the intended transmitter", "undo": "nothing was done", "required": true, "expected_seconds": 0.0228}, {"id": "6", "do": "assign", "title": "write down where pair runs", "data": {"assignment": {"pair": ["g1-gpu0", "g3-gpu0"]}, "before": {"pair": ["g1-gpu0", "g2-gpu0"]}}, "precondition": "", "verification": "", "undo": "write down the placement from before", "required": true, "expected_seconds": 0.0012}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {"mesh": [0, 1, 2, 3]}}, "why": ["g3-gpu0 takes the place of g2-gpu0: there is no other spare"], "measured": {"1": 3, "4": 3, "5": 3, "6": 3}}','dae1e6592bf8647e1a49a52cd9114e05b59bcc6196dc197038cd6ec8085b3a34','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',4,'rolled-back',1.79557291653820133214e+09,1.79557291781416058541e+09,NULL);
INSERT INTO "runs" VALUES('golden','set-0005','sim','set','set g3-gpu0-a transmit=off','{"schema": "lumctl/plan/v1", "id": "plan-af4194c1", "digest": "af4194c13b5ea652cab0d06008ef7e16f7d688186661e5ffea5e6daeb28de40d", "kind": "set", "title": "set g3-gpu0-a transmit=off", "rack": "golden", "target": "sim", "created_at": 1795572917.874422, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.1, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "join_changes": [], "steps": [{"id": "1", "do": "set", "title": "set g3-gpu0-a transmit=off (it shows on)", "data": {"component": "g3-gpu0-a", "setting": "transmit", "before": true, "after": false, "disturbs": []}, "precondition": "g3-gpu0-a shows transmit=on", "verification": "read back", "undo": "set transmit=on", "required": true, "expected_seconds": 0.1}], "start": {"assignment": {"pair": ["g1-gpu0", "g2-gpu0"]}, "crosses": {}}}','af4194c13b5ea652cab0d06008ef7e16f7d688186661e5ffea5e6daeb28de40d','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',5,'done',1.79557291793039107323e+09,1.79557291799552559848e+09,NULL);
INSERT INTO "runs" VALUES('golden','ack-0006','sim','ack','acknowledge g2-gpu0','{"id": "plan-c1bcbf98", "digest": "c1bcbf9869c85035e266b01c6dc306f9f7fc9be9349d525532ba4162dabdbf76", "schema": "lumctl/plan/v1", "kind": "ack", "title": "acknowledge g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795572918.034655, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "steps": [{"id": "1", "do": "record", "title": "acknowledge g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "acknowledge", "rule": null, "comment": "the vendor is called", "for_s": 7200.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','c1bcbf9869c85035e266b01c6dc306f9f7fc9be9349d525532ba4162dabdbf76','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79557291803465509413e+09,1.79557291803465509413e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0007','sim','maintain','open-window g2-gpu0','{"id": "plan-5a998a77", "digest": "5a998a77cc9dd3d911330849f90ea9c9c3d0d41a7ee0fc5264764b6d2b468ef5", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "open-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795572918.0663044, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "steps": [{"id": "1", "do": "record", "title": "open-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "open-window", "comment": "a new card", "starts_in_s": 0.0, "for_s": 3600.0}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','5a998a77cc9dd3d911330849f90ea9c9c3d0d41a7ee0fc5264764b6d2b468ef5','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.79557291806630444524e+09,1.79557291806630444524e+09,NULL);
INSERT INTO "runs" VALUES('golden','maintain-0008','sim','maintain','end-window g2-gpu0','{"id": "plan-4c4a6cb4", "digest": "4c4a6cb4a911ab3d57e0882708fe48afccf666d05850cff8773701db0631f863", "schema": "lumctl/plan/v1", "kind": "maintain", "title": "end-window g2-gpu0", "rack": "golden", "target": "sim", "created_at": 1795572918.3502975, "inventory_digest": "f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6", "undoes": null, "expected_seconds": 0.0, "warnings": [], "replacements": [], "candidates": [], "circuits": {"add": [], "remove": [], "keep": []}, "puc_changes": [], "steps": [{"id": "1", "do": "record", "title": "end-window g2-gpu0", "data": {"rack": "golden", "component": "g2-gpu0", "act": "end-window"}, "precondition": "", "verification": "", "undo": "the opposite is said", "required": true, "expected_seconds": 0.0}], "start": {"assignment": {}, "crosses": {}}}','4c4a6cb4a911ab3d57e0882708fe48afccf666d05850cff8773701db0631f863','f6f42e9efa8b27746aa390977213c55804864fa61d386dbc474db3641f32fcc6','ops@console from 10.0.0.7','0.1.0',0,'done',1.795572918350297451e+09,1.795572918350297451e+09,NULL);
CREATE TABLE transitions (
	rack VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	component VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	"before" VARCHAR, 
	"after" VARCHAR NOT NULL, 
	rules TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	PRIMARY KEY (rack, seq)
);
CREATE INDEX entries_of_a_run ON journal (rack, run);
CREATE INDEX entries_of_a_kind ON journal (rack, kind);
CREATE INDEX ix_maintenance_windows_rack ON maintenance_windows (rack);
CREATE INDEX transitions_of_a_component ON transitions (rack, component, seq);
COMMIT;
